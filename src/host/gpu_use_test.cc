#include "host/gpu_use.h"

#include "host/fake_tree_testing.h"

#include <fmt/core.h>

#include <array>

namespace lockstep::host {
namespace {

TEST(GpuUses, AreReadFromALine) {
  const auto use = parse_gpu_use("3, GPU-5c89aa, 97, 71234, 81559, 320.15, 61");
  ASSERT_TRUE(use);
  EXPECT_EQ(use->index, 3);
  EXPECT_EQ(use->uuid, "GPU-5c89aa");
  EXPECT_EQ(use->share, 0.97);
  EXPECT_EQ(use->memory, std::int64_t{71234} << 20);
  EXPECT_EQ(use->memory_total, std::int64_t{81559} << 20);
  EXPECT_EQ(use->watts, 320.15);
  EXPECT_EQ(use->celsius, 61);
  EXPECT_EQ(gpu_use_words(*use), "GPU 3: 97 %, 70 of 80 GiB, 320 W, 61 C");
}

TEST(GpuUses, OfWhatTheGpuDoesNotTellAreUnknown) {
  const auto use = parse_gpu_use(
      "0, GPU-a, [N/A], [Not Supported], [Insufficient Permissions], [GPU is lost], N/A, [N/A]");
  ASSERT_TRUE(use);
  EXPECT_FALSE(use->share || use->memory || use->memory_total || use->watts || use->celsius);
  EXPECT_EQ(use->recovery, "");
  EXPECT_EQ(gpu_use_words(*use), "GPU 0: not known");
  EXPECT_EQ(gpu_use_words(*parse_gpu_use("0, -, 5, 1024, -, -, -")), "GPU 0: 5 %, 1 GiB");
}

TEST(GpuUses, HaveWhatTheDriverAsksFor) {
  EXPECT_EQ(parse_gpu_use("0, GPU-a, 1, 1, 1, 1, 1, None")->recovery, "");
  const auto use = parse_gpu_use("0, GPU-a, 0, 1024, 1024, 50, 30, Reset");
  EXPECT_EQ(gpu_use_words(*use), "GPU 0: 0 %, 1 of 1 GiB, 50 W, 30 C, the driver asks for: Reset");
  EXPECT_EQ(nvidia_smi_use_command(true).at(1),
            nvidia_smi_use_command(false).at(1) + ",gpu_recovery_action");
  EXPECT_TRUE(is_unknown_field("Field \"gpu_recovery_action\" is not a valid field to query."));
  EXPECT_FALSE(is_unknown_field("0, GPU-a, 1, 1, 1, 1, 1"));
}

TEST(GpuUses, OfHostileLinesAreHarmless) {
  for (const char* line :
       {"", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ",,,,,,", "-1, GPU-a, 1, 1, 1, 1, 1", "99999, GPU-a, 1, 1, 1, 1, 1", "0, GPU-a, 1, 1, 1, 1",
        "0, GPU-a, 1, 1, 1, 1, 1, 1, 1", "0x1, GPU-a, 1, 1, 1, 1, 1"})
    EXPECT_FALSE(parse_gpu_use(line)) << line;
  EXPECT_FALSE(parse_gpu_use("0, GPU-" + std::string(600, 'a') + ", 1, 1, 1, 1, 1"));
  const auto use = parse_gpu_use("0, GPU-\x1b[2J\xff, 101, 1e300, nan, inf, 0x10, \x1b]0;x\x07");
  ASSERT_TRUE(use);
  EXPECT_EQ(use->uuid, "");
  EXPECT_FALSE(use->share || use->memory || use->memory_total || use->watts || use->celsius);
  EXPECT_EQ(use->recovery, "\\x1b]0;x\\x07");
  EXPECT_FALSE(parse_gpu_use("0, GPU-a, 1..2, 1, 1, 1, 1")->share);
  EXPECT_FALSE(parse_gpu_use("0, GPU-a, -5, 99999999999999999, 1, 1, 1")->memory);
}

TEST(GpuUses, AreReadAsTheyArePrinted) {
  for (const char* line :
       {"3, GPU-5c89aa, 97, 71234, 81559, 320.25, 61", "0, -, [N/A], [N/A], [N/A], [N/A], [N/A]"}) {
    const auto use = parse_gpu_use(line);
    const auto again = parse_gpu_use(gpu_use_line(*use));
    ASSERT_TRUE(again) << gpu_use_line(*use);
    EXPECT_EQ(gpu_use_words(*again), gpu_use_words(*use));
    EXPECT_EQ(again->uuid, use->uuid);
  }
}

class AmdUse : public FakeTree {};

TEST_F(AmdUse, ComesFromTheDriversFiles) {
  const std::string device = "/sys/bus/pci/devices/0000:c1:00.0";
  put(device + "/gpu_busy_percent", "87\n");
  put(device + "/mem_info_vram_used", "34359738368\n");
  put(device + "/mem_info_vram_total", "68702699520\n");
  put(device + "/hwmon/hwmon4/power1_average", "310000000\n");
  put(device + "/hwmon/hwmon4/temp1_input", "54000\n");
  const std::vector<Gpu> gpus = {
      {.vendor = GpuVendor::amd, .index = 0, .pci = "0000:c1:00.0", .uuid = "GPU-01"},
      {.vendor = GpuVendor::amd, .index = 1, .pci = "0000:c2:00.0"},
      {.vendor = GpuVendor::amd, .index = 2}};
  const auto all = read_amd_use(root_, gpus);
  ASSERT_EQ(all.size(), 2U) << "a GPU without a known place has no files";
  EXPECT_EQ(gpu_use_words(all[0]), "GPU 0: 87 %, 32 of 64 GiB, 310 W, 54 C");
  EXPECT_EQ(gpu_use_words(all[1]), "GPU 1: not known");
  EXPECT_EQ(gpu_use_words(*parse_gpu_use(gpu_use_line(all[0]))), gpu_use_words(all[0]));
  put(device + "/gpu_busy_percent", "4711\n");
  put(device + "/mem_info_vram_used", "99999999999999999999\n");
  EXPECT_FALSE(read_amd_use(root_, gpus)[0].share);
  EXPECT_FALSE(read_amd_use(root_, gpus)[0].memory);
}

}  // namespace
}  // namespace lockstep::host
