"""A PyTorch extension in C++, small enough to read: the digits, moved about (`examples/digits/train.py --augment`).

    lockstep wheel examples/augment
"""
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(name="augment", version="1.0", ext_modules=[CppExtension("augment", ["augment.cc"])],
      cmdclass={"build_ext": BuildExtension})
