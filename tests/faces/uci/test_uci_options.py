"""The options of the UCI engine."""

from __future__ import annotations

import pytest

from psearch import settings
from psearch.faces.uci.uci_options import OPTIONS, OptionValues


def test_options_declare_what_they_take() -> None:
    values = OptionValues()
    for option in OPTIONS:
        assert option.declaration().startswith(f"option name {option.name} type {option.kind}")
        if option.kind == "spin":
            for good in (option.low, option.high):
                values.set(option.name, str(good))
                assert values.number(option.name) == good
            for bad in (option.low - 1, option.high + 1, "", "1.5"):
                with pytest.raises(ValueError, match=option.name):
                    values.set(option.name, str(bad))
            assert values.number(option.name) == option.high
        elif option.kind == "combo":
            for choice in option.choices:
                values.set(option.name, choice.upper())
                assert values.text(option.name) == choice
        elif option.kind == "check":
            values.set(option.name, "true")
            assert values.flag(option.name)
            values.set(option.name, "false")
            assert not values.flag(option.name)
    copy = values.copy()
    values.set("Hash", "77")
    assert copy.number("Hash") != 77


def test_where_files_are_forbidden_a_policy_is_one_of_the_package_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also none that an installed package has declared: its import is code as well."""
    values = OptionValues(files=False)
    values.set("Policy", "ybw")
    with pytest.raises(ValueError, match="Policy is not available: PSEARCH_NO_FILES forbids all files"):
        values.set("Policy", "/home/me/my_policy.py")
    monkeypatch.setattr(settings, "is_own_policy", lambda name: name == "installed")
    with pytest.raises(ValueError, match="Policy is not available"):
        values.set("Policy", "installed")
    assert values.text("Policy") == "ybw"
