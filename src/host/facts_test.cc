#include "host/facts.h"

#include "host/facts_json.h"
#include "host/fake_tree_testing.h"
#include "host/nvidia_smi_command.h"

namespace lockstep::host {
namespace {

TEST(FactsText, VersionsAndNamesAreFound) {
  EXPECT_EQ(version_in("Python 3.11.2\n"), "3.11.2");
  EXPECT_EQ(version_in("rsync  version 3.2.7  protocol version 31\nmore"), "3.2.7");
  EXPECT_EQ(version_in("uv 0.4.18 (7b55e97 2024-10-01)"), "0.4.18");
  EXPECT_EQ(version_in(""), "");
  EXPECT_EQ(os_name("NAME=\"x\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(os_name("PRETTY_NAME=Arch\n"), "Arch");
  EXPECT_EQ(os_name(""), "");
}

TEST(NvidiaSmiQuery, RowsAreRead) {
  const auto rows = parse_nvidia_smi_query(
      "0, GPU-5c89, NVIDIA A100-SXM4-80GB, 81920\nbroken line\n"
      "1, GPU-77aa, Tesla V100-SXM2-16GB, [N/A]\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].uuid, "GPU-5c89");
  EXPECT_EQ(rows[0].name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(rows[0].memory, std::int64_t{81920} << 20);
  EXPECT_EQ(rows[1].memory, 0);
}

TEST(NvidiaSmiQuery, CapabilitiesAreRead) {
  const auto rows = parse_nvidia_smi_capabilities(
      "GPU-5c89, 8.0\nGPU-77aa, 12.1\nGPU-1, [N/A]\nGPU-2, 8\n\nField \"compute_cap\" is "
      "unknown\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].uuid, "GPU-5c89");
  EXPECT_EQ(rows[0].capability, 80);
  EXPECT_EQ(rows[1].capability, 121);
}

class FactsOf : public FakeTree {
 protected:
  // Answers like nvidia-smi, and knows no other program.
  std::optional<std::string> run(const std::vector<std::string>& argv) const {
    if (argv == nvidia_smi_query_command()) return smi_;
    return std::nullopt;
  }
  Facts facts() const {
    return gather_facts(root_, [this](const auto& argv) { return run(argv); });
  }
  std::optional<std::string> smi_;
};

TEST_F(FactsOf, ABareMachineHasNothing) {
  const Facts bare = facts();
  EXPECT_EQ(bare.os, "");
  EXPECT_EQ(bare.memory, 0);
  EXPECT_TRUE(bare.gpus.empty());
  EXPECT_EQ(bare.driver, "");
  EXPECT_FALSE(bare.shm.there);
  EXPECT_GT(bare.cpus, 0);
  EXPECT_GT(bare.open_files, 0);
}

TEST_F(FactsOf, MemoryAndFoldersAreMeasured) {
  put("/proc/meminfo", "MemTotal:       24576 kB\nMemAvailableX: 1 kB\nMemAvailable:   1024 kB\n");
  put("/dev/shm/x");
  const Facts here = facts();
  EXPECT_EQ(here.memory, 24576 * 1024);
  EXPECT_EQ(here.memory_available, 1024 * 1024);
  EXPECT_TRUE(here.shm.there && here.shm.writable);
  EXPECT_GT(here.shm.total, 0);
}

TEST_F(FactsOf, GpusHaveNamesFromTheDriverOrNvidiaSmi) {
  put("/proc/driver/nvidia/gpus/0000:1b:00.0/information",
      "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-5c89\nDevice Minor: \t 0\n");
  put("/dev/nvidia0");
  put("/sys/module/nvidia/version", "535.104.05\n");
  Facts here = facts();
  ASSERT_EQ(here.gpus.size(), 1U);
  EXPECT_EQ(here.gpus[0].name, "NVIDIA A100");
  EXPECT_EQ(here.gpus[0].memory, 0);
  EXPECT_EQ(here.driver, "535.104.05");
  smi_ = "0, GPU-5c89, NVIDIA A100-SXM4-80GB, 81920\n";
  here = facts();
  EXPECT_EQ(here.gpus[0].name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(here.gpus[0].memory, std::int64_t{80} << 30);
}

TEST_F(FactsOf, JsonIsReadAsItWasWritten) {
  Facts given = facts();
  given.user = "me";
  given.cpu_quota = 1.5;
  given.gpus = {{"nvidia", "A100", "GPU-1", 5}, {"amd", "MI300X", "", 0}};
  given.python = {"/usr/bin/python3", "3.11.2"};
  given.home.no_exec = true;
  const auto json = facts_json(given);
  const auto read = parse_facts(codec::parse_json(codec::print_json(json)));
  ASSERT_TRUE(read);
  EXPECT_EQ(facts_json(*read), json);
  EXPECT_EQ(read->gpus[1].name, "MI300X");
}

TEST_F(FactsOf, JsonThatIsNotOursIsRefused) {
  for (const char* text : {"", "[]", "{}", "7"})
    EXPECT_FALSE(parse_facts(codec::parse_json(text))) << text;
  const auto good = facts_json(facts());
  for (const auto& [name, value] : good.items()) {
    auto spoilt = good;
    spoilt[name] = value.is_string() ? nlohmann::ordered_json(7) : nlohmann::ordered_json("x");
    EXPECT_FALSE(parse_facts(spoilt)) << name;
    spoilt.erase(name);
    EXPECT_FALSE(parse_facts(spoilt)) << name;
  }
  auto large = good;
  large["os"] = std::string(1 << 20, 'x');
  EXPECT_FALSE(parse_facts(large));
}

}  // namespace
}  // namespace lockstep::host
