#include "slurm/gpu_words.h"

#include "base/text.h"
#include "slurm/job_script.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::slurm {
namespace {

// Keeps sums within int, whatever the script says.
constexpr std::int64_t kMostGpus = 1 << 24;

// Splits an item into its words: "gres/gpu:a100=8(S:0)" -> gpu, a100, 8.
std::vector<std::string> parts_of(std::string_view item) {
  std::string text(item.substr(0, item.find('(')));
  for (const std::string_view prefix : {"gres/", "gres:"})
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  std::replace(text.begin(), text.end(), '=', ':');
  return split(text, ':');
}

// parts: words behind "gpu". No number means one GPU.
CountedGpus gpus_in(const std::vector<std::string>& parts) {
  if (parts.empty()) return {"", 1};
  const auto last = number_of(parts.back());
  if (parts.size() == 1) return last ? CountedGpus{"", last} : CountedGpus{parts[0], 1};
  return {parts[0], last};
}

// Adds counts of several types: they all are GPUs of the same node.
void add(std::optional<CountedGpus>& sum, CountedGpus more) {
  if (!sum) {
    sum = std::move(more);
    return;
  }
  if (sum->count && more.count)
    sum->count = static_cast<int>(std::min(std::int64_t{*sum->count} + *more.count, kMostGpus));
  else
    sum->count.reset();
}

}  // namespace

CountedGpus gpus_of_count(std::string_view value) {
  std::optional<CountedGpus> sum;
  for (const std::string& item : split(value, ',')) {
    auto parts = parts_of(item);
    if (parts.size() > 1 && parts.front() == "gpu") parts.erase(parts.begin());
    add(sum, parts.size() == 1 ? CountedGpus{"", number_of(parts[0])}
                               : CountedGpus{parts[0], number_of(parts.back())});
  }
  return sum.value_or(CountedGpus{"", std::nullopt});
}

std::optional<CountedGpus> gpus_of_gres(std::string_view value) {
  std::optional<CountedGpus> sum;
  for (const std::string& item : split(value, ',')) {
    auto parts = parts_of(item);
    if (parts.front() != "gpu") continue;
    parts.erase(parts.begin());
    add(sum, gpus_in(parts));
  }
  return sum;
}

std::string print_gpus(const CountedGpus& gpus) {
  const int count = gpus.count.value_or(0);
  return gpus.type.empty() ? std::to_string(count) : fmt::format("{}:{}", gpus.type, count);
}

TresPerTask read_tres_per_task(std::string_view value) {
  TresPerTask tres{.gpus = gpus_of_gres(value)};
  for (const std::string& item : split(value, ',')) {
    const auto parts = parts_of(item);
    if (parts.front() == "gpu" && tres.gpus && tres.gpus->count) continue;
    if (parts.front() == "cpu" && parts.size() == 2) tres.cpus = number_of(parts[1]);
    if (parts.front() != "cpu" || !tres.cpus) tres.rest.push_back(item);
  }
  return tres;
}

}  // namespace lockstep::slurm
