#include "host/gpus.h"

#include "host/fake_tree_testing.h"
#include "host/gpu_visible.h"
#include "host/nvidia_smi_command.h"

#include <fmt/core.h>

#include <unistd.h>

namespace lockstep::host {
namespace {

std::vector<Gpu> four() {
  std::vector<Gpu> gpus(4);
  for (int i = 0; i < 4; ++i) {
    gpus[static_cast<std::size_t>(i)].index = i;
    gpus[static_cast<std::size_t>(i)].uuid = fmt::format("GPU-{}{}-tail", i < 2 ? "aa" : "bb", i);
  }
  return gpus;
}

std::string indices(const std::vector<Gpu>& gpus) {
  std::string text;
  for (const Gpu& gpu : gpus)
    text += std::to_string(gpu.index);
  return text;
}

std::string cuda(const std::optional<std::string>& value) {
  return indices(choose_nvidia(four(), value));
}

TEST(CudaVisibleDevices, Numbers) {
  EXPECT_EQ(cuda(std::nullopt), "0123");
  EXPECT_EQ(cuda(""), "");
  EXPECT_EQ(cuda("2,0"), "20");
  EXPECT_EQ(cuda(" 1 , 3 "), "13");
  EXPECT_EQ(cuda("0,4,1"), "0");
  EXPECT_EQ(cuda("0,-1,1"), "0");
  EXPECT_EQ(cuda("-1"), "");
  EXPECT_EQ(cuda("0,,1"), "0");
  EXPECT_EQ(cuda("1,1"), "");
  EXPECT_EQ(cuda("0,9,0"), "");  // repeated, although the list would have ended before
  EXPECT_EQ(cuda("NoDevFiles"), "");
  EXPECT_EQ(cuda("1abc,+2"), "12");
  EXPECT_EQ(cuda("0,GPU-bb2"), "0");
  EXPECT_EQ(cuda("99999999999999999999"), "");
}

TEST(CudaVisibleDevices, Uuids) {
  EXPECT_EQ(cuda("GPU-bb2-tail"), "2");
  EXPECT_EQ(cuda("GPU-bb3,GPU-aa0"), "30");
  EXPECT_EQ(cuda("GPU-bb"), "");  // ambiguous
  EXPECT_EQ(cuda("GPU-aa1,GPU-zz,GPU-aa0"), "1");
  EXPECT_EQ(cuda("GPU-aa1,2"), "1");
  EXPECT_EQ(cuda("GPU-aa1,GPU-aa1"), "");
  EXPECT_EQ(cuda("GPU-aa1,GPU-aa1-"), "");
}

TEST(CudaVisibleDevices, MigIsOneDevice) {
  auto gpus = four();
  EXPECT_TRUE(choose_nvidia(gpus, "MIG-x").empty());
  gpus[1].mig_instances = 7;
  EXPECT_EQ(indices(choose_nvidia(gpus, std::nullopt)), "1");
  EXPECT_EQ(indices(choose_nvidia(gpus, "0,2")), "02");
  EXPECT_EQ(indices(choose_nvidia(gpus, "0,1")), "1");
  EXPECT_EQ(indices(choose_nvidia(gpus, "MIG-x,MIG-y")), "1");
  EXPECT_EQ(indices(choose_nvidia(gpus, "MIG-GPU-aa1-tail/1/0")), "1");
  EXPECT_EQ(indices(choose_nvidia(gpus, "MIG-GPU-aa0-tail/1/0")), "");
  gpus[2].mig_uuids = {"MIG-xyz"};
  EXPECT_EQ(indices(choose_nvidia(gpus, "MIG-xy")), "2");
  EXPECT_EQ(indices(choose_nvidia(gpus, "MIG-other")), "");
}

TEST(RocmVisibleDevices, RocrThenHipElseCuda) {
  GpuEnvironment env;
  EXPECT_EQ(indices(choose_amd(four(), env)), "0123");
  env.cuda_visible_devices = "1";
  EXPECT_EQ(indices(choose_amd(four(), env)), "1");
  env.hip_visible_devices = "2,3";
  EXPECT_EQ(indices(choose_amd(four(), env)), "23");
  env.rocr_visible_devices = "3,2,1";
  EXPECT_EQ(indices(choose_amd(four(), env)), "1");
  env.rocr_visible_devices = "GPU-bb3";
  env.hip_visible_devices = "0";
  EXPECT_EQ(indices(choose_amd(four(), env)), "3");
}

TEST(ZeAffinityMask, ChoosesCards) {
  EXPECT_EQ(indices(choose_intel(four(), std::nullopt)), "0123");
  EXPECT_EQ(indices(choose_intel(four(), "3,1")), "13");
  EXPECT_EQ(indices(choose_intel(four(), "0.0,0.1,9")), "0");
}

class GpuTree : public FakeTree {
 protected:
  void put_nvidia(const char* bus, int minor, const char* extra = "") const {
    put(fmt::format("/proc/driver/nvidia/gpus/0000:{}:00.0/information", bus),
        fmt::format("Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-{}\nBus Location: \t 0000:{}:00.0\n"
                    "Device Minor: \t {}\n{}",
                    bus, bus, minor, extra));
    put(fmt::format("/sys/bus/pci/devices/0000:{}:00.0/numa_node", bus), minor < 2 ? "0\n" : "1\n");
    put(fmt::format("/dev/nvidia{}", minor));
  }
  static std::optional<std::string> never(const std::vector<std::string>&) {
    ADD_FAILURE() << "nvidia-smi was run";
    return std::nullopt;
  }
};

TEST_F(GpuTree, NothingThere) {
  EXPECT_TRUE(nvidia_gpus(root_, never, false).empty());
  EXPECT_TRUE(amd_gpus(root_).empty());
  EXPECT_TRUE(intel_gpus(root_).empty());
  EXPECT_TRUE(visible_cuda_gpus(root_, {}, never).empty());
}

TEST_F(GpuTree, NvidiaInBusOrder) {
  put_nvidia("dc", 0);
  put_nvidia("1A", 3);
  put("/dev/nvidiactl");
  put("/dev/nvidia-uvm");
  const auto gpus = nvidia_gpus(root_, never, false);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].pci, "0000:1a:00.0");
  EXPECT_EQ(gpus[0].uuid, "GPU-1A");
  EXPECT_EQ(gpus[0].numa_node, -1);  // sysfs names are lower case
  EXPECT_EQ(gpus[1].numa_node, 0);
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(visible_cuda_gpus(root_, {.cuda_visible_devices = "1"}, never).at(0).pci,
            "0000:dc:00.0");
}

TEST_F(GpuTree, HiddenAndExcludedGpusDoNotCount) {
  put_nvidia("10", 0);
  put_nvidia("20", 1, "GPU Excluded:\t Yes\n");
  put_nvidia("30", 2);
  std::filesystem::remove(root_ + "/dev/nvidia2");
  EXPECT_EQ(nvidia_gpus(root_, never, false).size(), 1U);
  if (geteuid() == 0) return;
  std::filesystem::permissions(root_ + "/dev/nvidia0", std::filesystem::perms::none);
  EXPECT_TRUE(nvidia_gpus(root_, never, false).empty());
}

TEST_F(GpuTree, MigInstances) {
  put_nvidia("10", 0);
  put("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access");
  put("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access");
  put("/proc/driver/nvidia/capabilities/gpu0/mig/gi2/ci0/access");
  EXPECT_EQ(nvidia_gpus(root_, {}, true).at(0).mig_instances, 2);
  const auto gpus = nvidia_gpus(
      root_,
      [](const std::vector<std::string>& argv) {
        EXPECT_EQ(argv, nvidia_smi_list_command());
        return "GPU 0: X (UUID: GPU-10)\n  MIG 1g.5gb  Device  0: (UUID: MIG-a)\n";
      },
      true);
  EXPECT_EQ(gpus.at(0).mig_uuids, std::vector<std::string>{"MIG-a"});
  EXPECT_EQ(gpus.at(0).mig_instances, 2);
}

TEST_F(GpuTree, NvidiaSmiIsAskedOnlyForNames) {
  put("/dev/nvidia0");
  EXPECT_EQ(visible_cuda_gpus(root_, {}, never).size(), 1U);
  EXPECT_EQ(visible_cuda_gpus(root_, {.cuda_visible_devices = "0"}, never).size(), 1U);
  const auto list = [](const auto&) { return "GPU 0: X (UUID: GPU-a)\n"; };
  EXPECT_EQ(visible_cuda_gpus(root_, {.cuda_visible_devices = "GPU-a"}, list).size(), 1U);
  EXPECT_EQ(visible_cuda_gpus(root_, {.cuda_visible_devices = "GPU-b"}, list).size(), 0U);
}

TEST_F(GpuTree, DeviceFilesAlone) {
  put("/dev/nvidia0");
  put("/dev/nvidia1");
  put("/dev/nvidia-modeset");
  EXPECT_EQ(nvidia_gpus(root_, {}, true).size(), 2U);
  const auto gpus = nvidia_gpus(
      root_, [](const auto&) { return "noise\nGPU 0: X (UUID: GPU-a)\nGPU 1: X (UUID: GPU-b)\n"; },
      true);
  EXPECT_EQ(gpus.at(1).uuid, "GPU-b");
}

TEST_F(GpuTree, WslAsksNvidiaSmi) {
  put("/dev/dxg");
  EXPECT_TRUE(nvidia_gpus(root_, {}, true).empty());
  EXPECT_EQ(nvidia_gpus(
                root_, [](const auto&) { return "GPU 0: X (UUID: GPU-a)\n"; }, false)
                .size(),
            1U);
}

TEST_F(GpuTree, Amd) {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  put(nodes + "0/properties", "cpu_cores_count 64\nsimd_count 0\n");
  put(nodes + "10/properties", "simd_count 0\n");
  put(nodes + "2/properties",
      "simd_count 304\ndomain 1\nlocation_id 49920\ndrm_render_minor 129\nunique_id "
      "11072163580372917\n");
  put(nodes + "1/properties", "simd_count 304\ndrm_render_minor 128\n");
  put("/sys/bus/pci/devices/0001:c3:00.0/numa_node", "3\n");
  put("/dev/dri/renderD129");
  EXPECT_TRUE(amd_gpus(root_).empty());
  put("/dev/kfd");
  const auto gpus = amd_gpus(root_);
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].pci, "0001:c3:00.0");
  EXPECT_EQ(gpus[0].numa_node, 3);
  EXPECT_EQ(gpus[0].uuid, "GPU-00275612f91a67b5");
  EXPECT_EQ(visible_cuda_gpus(root_, {}, {}).size(), 1U);
}

TEST_F(GpuTree, IntelDiscreteOnly) {
  const auto card = [&](int number, const std::string& pci, const char* driver,
                        const char* vendor) {
    const std::string device = "/sys/devices/" + pci;
    put(device + "/vendor", vendor);
    put(device + "/numa_node", "1\n");
    put(fmt::format("{}/drm/renderD{}/dev", device, 128 + number));
    link(device + "/driver", fmt::format("../../bus/pci/drivers/{}", driver));
    link(fmt::format("/sys/class/drm/card{}/device", number), root_ + device);
    put(fmt::format("/dev/dri/renderD{}", 128 + number));
  };
  put("/sys/class/drm/card0-DP-1/status", "connected");
  card(0, "0000:00:02.0", "i915", "0x8086\n");
  card(1, "0000:8c:00.0", "xe", "0x8086\n");
  card(2, "0000:4d:00.0", "i915", "0x8086\n");
  card(3, "0000:5d:00.0", "amdgpu", "0x1002\n");
  const auto gpus = intel_gpus(root_);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].pci, "0000:4d:00.0");
  EXPECT_EQ(gpus[1].numa_node, 1);
  EXPECT_EQ(visible_xpu_gpus(root_, {.ze_affinity_mask = "1"}).at(0).pci, "0000:8c:00.0");
}

}  // namespace
}  // namespace lockstep::host
