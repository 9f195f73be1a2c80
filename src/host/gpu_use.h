// How much a GPU is used: lines of nvidia-smi, and the files of AMD's driver.
#pragma once

#include "host/gpus.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::host {

// What a GPU does not tell is nullopt or empty.
struct GpuUse {
  int index = 0;
  std::string uuid = {};
  std::optional<double> share = {};         // of the last moments in which a kernel ran: 0 to 1
  std::optional<std::int64_t> memory = {};  // bytes
  std::optional<std::int64_t> memory_total = {};
  std::optional<double> watts = {};
  std::optional<double> celsius = {};
  // What the driver wants done after a fault: "Reset", "Reboot". Printable.
  std::string recovery = {};
};

// Prints a line for each GPU every five seconds, until it is ended. recovery: drivers before 565
// know no recovery action, and refuse the whole query.
std::vector<std::string> nvidia_smi_use_command(bool recovery);
// Returns whether the line says that this driver does not know a field of the query.
bool is_unknown_field(std::string_view line);

// Reads "3, GPU-5c89..., 97, 71234, 81559, 320.15, 61" and perhaps a recovery action. A number that
// is "[N/A]" or nonsense is unknown. nullopt: the line has another form, a message for example.
std::optional<GpuUse> parse_gpu_use(std::string_view line);
// Prints a line that parse_gpu_use() reads.
std::string gpu_use_line(const GpuUse& use);

// Reads the files of AMD's driver, which may wait for a GPU that is being reset: never call this
// where nothing may wait. `root` is "" outside of tests.
std::vector<GpuUse> read_amd_use(const std::string& root, const std::vector<Gpu>& gpus);

// "GPU 3: 100 %, 71 of 80 GiB, 320 W, 61 C".
std::string gpu_use_words(const GpuUse& use);

}  // namespace lockstep::host
