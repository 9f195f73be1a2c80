"""A project with DeepSpeed's layout. op_builder/ lists the ops, DS_BUILD_* choose those to build, and the package
records the ops that were built."""
import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension

from op_builder import ALL_OPS

default = int(os.environ.get("DS_BUILD_OPS") or 0)
installed = {name: False for name in ALL_OPS}
extensions = []
for name, builder in ALL_OPS.items():
    if int(os.environ.get(builder.BUILD_VAR) or default) and builder.is_compatible():
        installed[name] = True
        extensions.append(builder.extension())

pair = {"version": ".".join(torch.__version__.split(".")[:2]), "cuda_version": "0.0"}
pair["version"] = os.environ.get("DS_MINI_CLAIMED_TORCH") or pair["version"]  # for a test of a wheel that does not fit
with open("mini_ops/git_version_info_installed.py", "w") as file:
    file.write(f"version='1.0'\ninstalled_ops={installed}\ntorch_info={pair}\n")

setup(name="mini_ops", version="1.0", packages=["mini_ops"], ext_modules=extensions,
      cmdclass={"build_ext": BuildExtension.with_options(use_ninja=bool(os.environ.get("DS_ENABLE_NINJA")))})
