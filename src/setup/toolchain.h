// Which C++ compilers, CUDA toolkits, GPU architectures and builds of PyTorch fit together, and
// what is wrong with a given set. Pure tables.
#pragma once

#include "base/error.h"
#include "setup/finding.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct Release {
  int major = 0;
  int minor = 0;

  bool operator==(const Release&) const = default;
  auto operator<=>(const Release&) const = default;
};
// Reads "12.2.0", "2.14.1+debian" or "13" (as 13.0). nullopt: the text does not begin with a
// number.
std::optional<Release> read_release(std::string_view text);
std::string release_text(Release release);

// A GPU architecture as TORCH_CUDA_ARCH_LIST has it: "8.6", "9.0a", "8.0+PTX".
struct Arch {
  int capability = 0;  // 86
  std::string suffix = {};

  bool operator==(const Arch&) const = default;
};
std::string arch_text(const Arch& arch);
std::string archs_text(const std::vector<Arch>& archs);  // "8.0;9.0+PTX"
// Reads architectures separated by ';', ',' or space, and names of GPUs. The error names the bad
// word.
Result<std::vector<Arch>> read_archs(std::string_view text);

// Returns the architectures that a toolkit compiles for, ascending. Empty: the toolkit is older
// than the table.
std::vector<int> accepted_archs(Release cuda);
// Refuses what the toolkit's nvcc would refuse. The error lists the accepted architectures.
Status check_archs(const std::vector<Arch>& archs, Release cuda);

// Major versions of gcc accepted by nvcc as host compiler: from <= gcc < below.
struct GccWindow {
  int from = 0;
  int below = 0;
};
std::optional<GccWindow> gcc_window(Release cuda);

int cxx_standard_of(Release torch);  // the C++ standard of PyTorch's headers: 14, 17 or 20
int oldest_gcc_for(Release torch);

// The tools that extensions are built with on this node.
struct Toolchain {
  std::string gcc = {};  // a path; empty: none
  std::optional<Release> gcc_version = {};
  std::string nvcc = {};  // a path; empty: none
  std::optional<Release> cuda = {};
  std::string python = {};
  bool headers = false;    // Python.h exists
  std::string torch = {};  // version; empty: not installed
  std::optional<Release> torch_cuda = {};
};
std::vector<Finding> findings_of(const Toolchain& tools);

}  // namespace lockstep::setup
