class ScaleBuilder:
    BUILD_VAR = "DS_BUILD_CPU_SCALE"
    NAME = "cpu_scale"

    @staticmethod
    def is_compatible():
        return True

    @staticmethod
    def extension():
        from torch.utils.cpp_extension import CppExtension
        # DeepSpeed asks for these on a machine with AVX-512; -O0 in place of its -O3 to save the test's time.
        return CppExtension(name="mini_ops.scale_op", sources=["csrc/scale.cpp"],
                            extra_compile_args=["-O0", "-g0", "-std=c++17", "-march=native", "-D__AVX512__"])
