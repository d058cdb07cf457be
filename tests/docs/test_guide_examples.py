"""The examples in the guides print what the guides say (`tests/support/guide_examples.py` writes them again)."""

from __future__ import annotations

import pytest
from guide_examples import PAGES, Example, examples_of, masked, output_of

EXAMPLES = [example for path in PAGES for example in examples_of(path.read_text("utf-8"))]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.command))
def test_the_output_is_that_of_the_command(example: Example) -> None:
    assert "--threads 1" in example.command and "--nodes" in example.command, "else the figures are the machine's"
    assert masked(output_of(example.command)) == masked(example.output)


def test_only_times_and_versions_are_masked() -> None:
    row = "WAC.001   right      Qg6      Qg6         {}     7/17        #2         43,706\n"
    assert masked(row.format("0.03")) == masked(row.format("9.87"))
    assert "43,706" in masked(row.format("0.03"))
    assert masked("searched   1,000 nodes in 0.1 s, 10,000 nps\n") == "searched   1,000 nodes in TIME\n"
