// Says what it was compiled for. It is linked with PyTorch's libraries, as every op is.
#include <c10/core/CPUAllocator.h>
#include <pybind11/pybind11.h>

#include <string>

namespace {

std::string vectors() {
#if defined(__AVX512__)
  return "avx512";
#elif defined(__AVX256__)
  return "avx256";
#else
  return "scalar";
#endif
}

bool compiled_with_avx512() {
#if defined(__AVX512F__)
  return true;
#else
  return false;
#endif
}

}  // namespace

PYBIND11_MODULE(scale_op, module) {
  module.def("scale", [](double value) { return value * 3; });
  module.def("vectors", &vectors);
  module.def("compiled_with_avx512", &compiled_with_avx512);
  module.def("has_allocator", [] { return c10::GetCPUAllocator() != nullptr; });
}
