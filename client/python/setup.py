# SPDX-License-Identifier: MIT
"""Adds to the package what is built: the protocol's messages, and libhackc.so with the libraries beside it.

libhackc.so is taken from $HACKC_LIBRARY, else from lib/ or build/lib/ of the tree around; without one the package is
pure, and finds the library when it runs.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import make_messages  # noqa: E402


def library():
    given = os.environ.get("HACKC_LIBRARY")
    places = [pathlib.Path(given)] if given else [HERE.parents[1] / folder / "libhackc.so" for folder in ("lib", "build/lib")]
    return next((path for path in places if path.exists()), None)


class Build(build_py):
    def run(self):
        made = pathlib.Path(self.build_lib) / "hackc"
        shutil.rmtree(made, ignore_errors=True)  # of an earlier build, whose modules may be gone
        super().run()
        if not (HERE / "hackc" / "v1" / "compiler_pb2.py").exists():  # a bundle has them
            make_messages.make(self.build_lib)
        found = library()
        if found is None:
            return
        (made / "lib").mkdir(parents=True, exist_ok=True)
        needed = subprocess.run(["ldd", found], capture_output=True, text=True).stdout.split()
        beside = [pathlib.Path(word) for word in needed if word.startswith("/")]
        # Those of a bundle: libhackc.so finds them in its own folder. A system's stay where they are.
        for path in [found] + [path for path in beside if path.resolve().parent == found.resolve().parent]:
            shutil.copy(path, made / "lib" / path.name)


class Wheel(bdist_wheel):
    """Any Python 3, but this platform when the library is in it."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = library() is None

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel})
