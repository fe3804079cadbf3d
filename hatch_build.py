"""Build hook: compiles the core when there is a C compiler; without one the package is pure Python."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = "src/findling/core"
_ATTEMPTS = ((), (("FINDLING_PLAIN", "1"),))
"""Macros to compile with: a compiler that is too old for the kernels of new processors may know plain C."""


class CoreBuildHook(BuildHookInterface[Any]):
    """Adds the compiled core to a wheel, or lays it into the source tree for an editable install."""

    PLUGIN_NAME = "custom"
    _scratch = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a failure is reported and never stops an install."""
        if self.target_name != "wheel":
            return
        self._scratch = tempfile.mkdtemp(prefix="findling-core-")
        built, problem = None, ""
        for macros in _ATTEMPTS:
            try:
                built = compile_core(Path(self.root) / _FOLDER, Path(self._scratch), macros)
                break
            except (Exception, SystemExit) as error:  # compilers fail in many ways
                problem = problem or str(error)
        if built is None:
            self.app.display_warning(
                f"findling is installed without its compiled core, which makes it slower: {problem}"
            )
        elif version == "editable":
            _replace(built, Path(self.root) / _FOLDER / built.name)
        else:
            build_data["force_include"][str(built)] = f"findling/core/{built.name}"
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files of the compiler."""
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)


def compile_core(folder: Path, scratch: Path, macros: tuple[tuple[str, str], ...] = ()) -> Path:
    """The compiled module below `scratch`; raises what the compiler or setuptools raise."""
    from setuptools import Distribution, Extension

    is_msvc = sys.platform == "win32"
    extension = Extension(
        "_native",
        sorted(str(source) for source in folder.glob("*.c")),
        include_dirs=[str(folder)],
        define_macros=list(macros),
        extra_compile_args=[] if is_msvc else ["-O3", "-ffp-contract=off", "-fvisibility=hidden"],
        libraries=[] if is_msvc else ["m"],
        py_limited_api=True,
    )
    command = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(scratch / "lib"), str(scratch / "objects")
    command.ensure_finalized()
    command.run()
    return Path(command.get_ext_fullpath("_native"))


def _replace(built: Path, target: Path) -> None:
    # Processes that have the old file mapped keep it.
    fresh = target.with_name(f"{target.name}.new")
    shutil.copyfile(built, fresh)
    fresh.replace(target)
