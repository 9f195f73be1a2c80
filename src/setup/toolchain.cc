#include "setup/toolchain.h"

#include "base/text.h"
#include "setup/gpu_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::setup {
namespace {

constexpr std::size_t kMostArchs = 64;

struct ArchRow {
  int capability;
  Release first;        // the first toolkit with this architecture
  Release gone = {99};  // the first toolkit without it
};
constexpr std::array<ArchRow, 20> kArchs = {
    {{50, {6, 5}, {13, 0}}, {52, {6, 5}, {13, 0}}, {53, {7, 0}, {13, 0}}, {60, {8, 0}, {13, 0}},
     {61, {8, 0}, {13, 0}}, {62, {8, 0}, {13, 0}}, {70, {9, 0}, {13, 0}}, {72, {9, 2}, {13, 0}},
     {75, {10, 0}},         {80, {11, 0}},         {86, {11, 1}},         {87, {11, 4}},
     {88, {13, 0}},         {89, {11, 8}},         {90, {11, 8}},         {100, {12, 8}},
     {103, {12, 9}},        {110, {13, 0}},        {120, {12, 8}},        {121, {12, 9}}}};

// The limits of PyTorch's cpp_extension and of the toolkits' host_config.h.
struct WindowRow {
  Release up_to;  // the last toolkit with this window
  GccWindow window;
};
// Order matters: the first row that is not older than the toolkit wins.
constexpr std::array<WindowRow, 8> kWindows = {{{{11, 0}, {5, 10}},
                                                {{11, 3}, {5, 11}},
                                                {{11, 99}, {6, 12}},
                                                {{12, 2}, {6, 13}},
                                                {{12, 7}, {6, 14}},
                                                {{12, 99}, {6, 15}},
                                                {{13, 0}, {6, 16}},
                                                {{13, 99}, {6, 16}}}};
constexpr Release kOldestCuda{11, 0};

std::string capability_text(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

std::string accepted_text(Release cuda) {
  std::vector<std::string> texts;
  for (const int each : accepted_archs(cuda))
    texts.push_back(capability_text(each));
  return join(texts, ", ");
}

std::string gcc_range(GccWindow window, int oldest) {
  return fmt::format("gcc {} to {}", std::max(window.from, oldest), window.below - 1);
}

class Look {
 public:
  explicit Look(const Toolchain& tools) : tools_(tools) {}

  std::vector<Finding> take() {
    look_at_python();
    look_at_gcc();
    look_at_cuda();
    return std::move(findings_);
  }

 private:
  void add(bool trouble, std::string_view what, std::string text, std::string cure) {
    findings_.push_back({trouble, what, std::move(text), std::move(cure)});
  }

  void look_at_python() {
    if (tools_.python.empty()) return;  // the doctor reports a missing Python itself
    if (tools_.torch.empty())
      return add(false, "no-torch", fmt::format("{} has no PyTorch", tools_.python),
                 "install torch there, or name another Python with --python PATH");
    if (!tools_.headers)
      add(false, "no-python-headers",
          fmt::format("{} has no Python.h, without which no extension can be built", tools_.python),
          "as root: apt install python3-dev; or take the Python of conda or uv, which includes the "
          "headers");
  }

  void look_at_gcc() {
    if (tools_.gcc.empty() || !tools_.gcc_version)
      return add(false, "no-gcc", "no C++ compiler is installed, so no extension can be built here",
                 "module load gcc, conda install -c conda-forge gxx, or as root: apt install g++");
    const auto torch = read_release(tools_.torch);
    if (!torch || tools_.gcc_version->major >= oldest_gcc_for(*torch)) return;
    const auto window = tools_.cuda ? gcc_window(*tools_.cuda) : std::nullopt;
    const std::string wanted = window ? gcc_range(*window, oldest_gcc_for(*torch))
                                      : fmt::format("gcc {} or newer", oldest_gcc_for(*torch));
    add(true, "gcc-too-old",
        fmt::format("gcc {} ({}) is too old: the headers of PyTorch {} need C++{}",
                    release_text(*tools_.gcc_version), tools_.gcc, tools_.torch,
                    cxx_standard_of(*torch)),
        fmt::format("set CC and CXX to {}", wanted));
  }

  void look_at_cuda() {
    if (tools_.torch_cuda && (tools_.nvcc.empty() || !tools_.cuda))
      return add(false, "no-nvcc",
                 fmt::format("PyTorch {} is built for CUDA {}, but nvcc is missing, which builds "
                             "extensions for GPUs",
                             tools_.torch, release_text(*tools_.torch_cuda)),
                 fmt::format("set CUDA_HOME to a toolkit {}.x", tools_.torch_cuda->major));
    if (!tools_.cuda) return;
    look_at_window();
    if (tools_.torch_cuda) look_at_pair();
  }

  void look_at_window() {
    const auto window = gcc_window(*tools_.cuda);
    if (!window)
      return add(false, "cuda-unknown",
                 fmt::format("CUDA {} ({}) is unknown to Lockstep", release_text(*tools_.cuda),
                             tools_.nvcc),
                 "builds with this toolkit may fail; CUDA 11.0 to 13 is known");
    if (!tools_.gcc_version) return;
    const int gcc = tools_.gcc_version->major;
    if (gcc >= window->from && gcc < window->below) return;
    const auto torch = read_release(tools_.torch);
    const bool is_new = gcc >= window->below;
    add(true, is_new ? "gcc-too-new" : "gcc-too-old",
        fmt::format("gcc {} ({}) is too {} for the nvcc of CUDA {}",
                    release_text(*tools_.gcc_version), tools_.gcc, is_new ? "new" : "old",
                    release_text(*tools_.cuda)),
        fmt::format("set CC and CXX to {}, or CUDA_HOME to a {} toolkit",
                    gcc_range(*window, torch ? oldest_gcc_for(*torch) : 0),
                    is_new ? "newer" : "older"));
  }

  // PyTorch refuses a different major version of CUDA. From CUDA 13 on DeepSpeed also refuses a
  // different minor version.
  void look_at_pair() {
    const Release torch = *tools_.torch_cuda;
    const Release cuda = *tools_.cuda;
    const std::string text =
        fmt::format("nvcc is of CUDA {} ({}), PyTorch {} is built for CUDA {}", release_text(cuda),
                    tools_.nvcc, tools_.torch, release_text(torch));
    if (torch.major != cuda.major)
      return add(true, "cuda-differs", text + ": extensions refuse to build",
                 fmt::format("set CUDA_HOME to a toolkit {}.x", torch.major));
    if (torch != cuda && cuda.major >= 13)
      add(false, "cuda-minor-differs", text + ": DeepSpeed refuses to build",
          fmt::format("set CUDA_HOME to toolkit {}, or DS_SKIP_CUDA_CHECK=1", release_text(torch)));
  }

  const Toolchain& tools_;
  std::vector<Finding> findings_;
};

}  // namespace

std::optional<Release> read_release(std::string_view text) {
  const auto number = [&text]() -> std::optional<int> {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0 || digits > 6) return std::nullopt;
    const auto value = static_cast<int>(*parse_int(text.substr(0, digits)));
    text.remove_prefix(digits);
    return value;
  };
  const auto major = number();
  if (!major) return std::nullopt;
  if (!text.starts_with('.')) return Release{*major};
  text.remove_prefix(1);
  return Release{*major, number().value_or(0)};
}

std::string release_text(Release release) {
  return fmt::format("{}.{}", release.major, release.minor);
}

std::string arch_text(const Arch& arch) {
  return capability_text(arch.capability) + arch.suffix;
}

std::string archs_text(const std::vector<Arch>& archs) {
  std::vector<std::string> texts;
  texts.reserve(archs.size());
  for (const Arch& each : archs)
    texts.push_back(arch_text(each));
  return join(texts, ";");
}

Result<std::vector<Arch>> read_archs(std::string_view text) {
  std::string plain(text);
  // TORCH_CUDA_ARCH_LIST allows spaces, too.
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c == ' ' || c == ','; }, ';');
  std::vector<Arch> archs;
  for (const std::string& word : split(plain, ';')) {
    if (word.empty()) continue;
    if (const int named = capability_of(word); named > 0) {
      // Several GPUs may have one architecture. Name each architecture once.
      const auto same = [&](const Arch& each) { return each.capability == named; };
      if (std::none_of(archs.begin(), archs.end(), same)) archs.push_back({named});
      continue;
    }
    const std::size_t dot = word.find('.');
    const auto release = read_release(word);
    const std::size_t end =
        dot == std::string::npos ? dot : word.find_first_not_of("0123456789", dot + 1);
    const std::string suffix = end == std::string::npos ? "" : word.substr(end);
    const bool digits = dot != std::string::npos && end != dot + 1 && dot + 1 < word.size();
    // nvcc's suffixes: "a" is for exactly this architecture, "f" for its family.
    const bool known = suffix.empty() || suffix == "+PTX" || suffix == "a" || suffix == "f";
    if (!release || !digits || release->minor > 9 || release->major > 99 || !known)
      return fail(Errc::invalid_input,
                  fmt::format("'{}' is not a GPU architecture", printable(word)),
                  "write compute capabilities, as 8.0;9.0 or 8.6+PTX, or GPUs, as V100;RTX-A6000");
    archs.push_back({release->major * 10 + release->minor, suffix});
    if (archs.size() > kMostArchs)
      return fail(Errc::invalid_input, "too many GPU architectures are given");
  }
  if (archs.empty())
    return fail(Errc::invalid_input, "no GPU architecture is given",
                "write compute capabilities, as 8.0;9.0");
  return archs;
}

std::vector<int> accepted_archs(Release cuda) {
  std::vector<int> archs;
  for (const ArchRow& row : kArchs)
    if (row.first <= cuda && cuda < row.gone) archs.push_back(row.capability);
  return archs;
}

Status check_archs(const std::vector<Arch>& archs, Release cuda) {
  const std::vector<int> accepted = accepted_archs(cuda);
  for (const Arch& arch : archs) {
    if (std::find(accepted.begin(), accepted.end(), arch.capability) != accepted.end()) continue;
    const auto* row = std::find_if(kArchs.begin(), kArchs.end(), [&](const ArchRow& each) {
      return each.capability == arch.capability;
    });
    std::string why = "no toolkit knows it";
    if (row != kArchs.end() && cuda < row->first)
      why = fmt::format("it needs CUDA {} or newer", release_text(row->first));
    else if (row != kArchs.end())
      why = fmt::format("it needs CUDA {}.x or older", row->gone.major - 1);
    return fail(Errc::invalid_input,
                fmt::format("CUDA {} does not compile for {}: {}", release_text(cuda),
                            arch_text(arch), why),
                "this toolkit takes " + accepted_text(cuda));
  }
  return {};
}

std::optional<GccWindow> gcc_window(Release cuda) {
  if (cuda < kOldestCuda) return std::nullopt;
  for (const WindowRow& row : kWindows)
    if (cuda <= row.up_to) return row.window;
  return std::nullopt;
}

int cxx_standard_of(Release torch) {
  if (torch >= Release{2, 12}) return 20;
  return torch >= Release{2, 1} ? 17 : 14;
}

int oldest_gcc_for(Release torch) {
  const int standard = cxx_standard_of(torch);
  if (standard == 20) return 11;
  return standard == 17 ? 9 : 5;
}

std::vector<Finding> findings_of(const Toolchain& tools) {
  return Look(tools).take();
}

}  // namespace lockstep::setup
