"""Write the commit that is built into the package, for `psearch version`; pyproject.toml has everything else."""

import contextlib
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithCommit(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # a checkout is asked when it is run
            self._write_commit()

    def _write_commit(self) -> None:
        place = Path(self.build_lib) / "psearch" / "commit.txt"
        place.unlink(missing_ok=True)  # of an earlier build
        if not Path(".git").exists():  # the files of an archive may lie within another repository
            return
        command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            place.write_bytes(subprocess.run(command, capture_output=True, check=True, timeout=10).stdout)


setup(cmdclass={"build_py": BuildWithCommit})
