// Reads and prints how GPUs are used.
#include "host/gpu_use.h"

#include "base/text.h"
#include "host/sysfs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace lockstep::host {
namespace {

constexpr std::string_view kUseFields =
    "index,uuid,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu";
constexpr std::size_t kUseFieldCount = 7;
constexpr std::size_t kMostUseLine = 512;
constexpr std::size_t kMostUuid = 96;
constexpr std::size_t kMostRecovery = 40;
constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr double kMostGpuMemory = 1LL << 50;
constexpr int kMostIndex = 4096;

// A number from 0 to `most`. nvidia-smi writes "[N/A]", "[Not Supported]" or "[GPU is lost]" where
// it knows none.
std::optional<double> number_in(std::string_view field, double most) {
  const std::string text(strip(field));
  // strtod() would also take "nan", "inf" and hexadecimal numbers.
  if (text.empty() || text.size() > 24 || text.find_first_not_of("0123456789.") != text.npos)
    return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(number <= most)) return std::nullopt;
  return number;
}

std::optional<std::int64_t> bytes_in(std::string_view field) {
  const auto mib = number_in(field, kMostGpuMemory / kMiB);
  return mib ? std::optional(static_cast<std::int64_t>(*mib * kMiB)) : std::nullopt;
}

// Returns "" if the driver wants nothing, or says nothing.
std::string recovery_in(std::string_view field) {
  const std::string_view text = strip(field);
  if (text.empty() || text == "None" || text == "N/A" || text.starts_with('[')) return {};
  return printable(std::string(text), kMostRecovery);
}

// "GPU-5c89aa31-...".
bool is_uuid(std::string_view text) {
  return text.starts_with("GPU-") && text.size() <= kMostUuid &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
         });
}

template <class Number>
std::string or_unknown(const std::optional<Number>& number, double unit) {
  return number ? fmt::format("{:.2f}", static_cast<double>(*number) / unit) : "[N/A]";
}

std::optional<double> file_number(const std::string& path, double unit) {
  const auto text = read_text(path);
  const auto number = text ? number_in(*text, 1e18) : std::nullopt;
  return number ? std::optional(*number / unit) : std::nullopt;
}

std::optional<std::int64_t> file_bytes(const std::string& path) {
  const auto bytes = file_number(path, 1);
  if (!bytes || *bytes > kMostGpuMemory) return std::nullopt;
  return static_cast<std::int64_t>(*bytes);
}

}  // namespace

std::vector<std::string> nvidia_smi_use_command(bool recovery) {
  return {"nvidia-smi",
          fmt::format("--query-gpu={}{}", kUseFields, recovery ? ",gpu_recovery_action" : ""),
          "--format=csv,noheader,nounits", "-l", "5"};
}

bool is_unknown_field(std::string_view line) {
  return line.find("not a valid field") != std::string_view::npos;
}

std::optional<GpuUse> parse_gpu_use(std::string_view line) {
  if (line.size() > kMostUseLine) return std::nullopt;
  const auto fields = split(line, ',');
  if (fields.size() != kUseFieldCount && fields.size() != kUseFieldCount + 1) return std::nullopt;
  const auto index = parse_int(strip(fields[0]));
  const std::string_view uuid = strip(fields[1]);
  if (!index || *index < 0 || *index > kMostIndex) return std::nullopt;
  GpuUse use{.index = static_cast<int>(*index)};
  if (is_uuid(uuid)) use.uuid = uuid;
  use.share = number_in(fields[2], 100);
  if (use.share) *use.share /= 100;
  use.memory = bytes_in(fields[3]);
  use.memory_total = bytes_in(fields[4]);
  use.watts = number_in(fields[5], 1e5);
  use.celsius = number_in(fields[6], 1e3);
  if (fields.size() > kUseFieldCount) use.recovery = recovery_in(fields[7]);
  return use;
}

std::string gpu_use_line(const GpuUse& use) {
  return fmt::format("{}, {}, {}, {}, {}, {}, {}", use.index, use.uuid.empty() ? "-" : use.uuid,
                     or_unknown(use.share, 0.01), or_unknown(use.memory, kMiB),
                     or_unknown(use.memory_total, kMiB), or_unknown(use.watts, 1),
                     or_unknown(use.celsius, 1));
}

std::vector<GpuUse> read_amd_use(const std::string& root, const std::vector<Gpu>& gpus) {
  std::vector<GpuUse> all;
  for (const Gpu& gpu : gpus) {
    if (gpu.vendor != GpuVendor::amd || gpu.pci.empty()) continue;
    const std::string device = root + "/sys/bus/pci/devices/" + gpu.pci;
    GpuUse& use = all.emplace_back(GpuUse{.index = gpu.index, .uuid = gpu.uuid});
    use.share = file_number(device + "/gpu_busy_percent", 100);
    if (use.share > 1.0) use.share.reset();
    use.memory = file_bytes(device + "/mem_info_vram_used");
    use.memory_total = file_bytes(device + "/mem_info_vram_total");
    for (const int number : list_numbered(device + "/hwmon", "hwmon")) {
      const std::string sensors = fmt::format("{}/hwmon/hwmon{}", device, number);
      // Newer cards tell the power of the moment, older ones a mean. Both in microwatts.
      use.watts = file_number(sensors + "/power1_average", 1e6);
      if (!use.watts) use.watts = file_number(sensors + "/power1_input", 1e6);
      use.celsius = file_number(sensors + "/temp1_input", 1e3);
    }
  }
  return all;
}

std::string gpu_use_words(const GpuUse& use) {
  std::vector<std::string> facts;
  if (use.share) facts.push_back(fmt::format("{:.0f} %", 100 * *use.share));
  if (use.memory && use.memory_total)
    facts.push_back(fmt::format("{:.0f} of {:.0f} GiB", static_cast<double>(*use.memory) / kGiB,
                                static_cast<double>(*use.memory_total) / kGiB));
  else if (use.memory)
    facts.push_back(fmt::format("{:.0f} GiB", static_cast<double>(*use.memory) / kGiB));
  if (use.watts) facts.push_back(fmt::format("{:.0f} W", *use.watts));
  if (use.celsius) facts.push_back(fmt::format("{:.0f} C", *use.celsius));
  if (!use.recovery.empty()) facts.push_back("the driver asks for: " + use.recovery);
  return fmt::format("GPU {}: {}", use.index, facts.empty() ? "not known" : join(facts, ", "));
}

}  // namespace lockstep::host
