#include "setup/doctor.h"

#include "setup/python_facts.h"
#include "setup/toolchain_probe.h"

#include <gtest/gtest.h>

#include <functional>

namespace lockstep::setup {
namespace {

DoctorFacts good() {
  DoctorFacts facts;
  facts.host.gpus = {{.vendor = "nvidia", .name = "NVIDIA A100-SXM4-80GB", .uuid = "GPU-1"}};
  facts.host.driver = "550.54.15";
  facts.python = {.python = "/usr/bin/python3",
                  .version = "3.11.2",
                  .torch = "2.6.0+cu124",
                  .torch_cuda = "12.4",
                  .nccl = "2.21.5",
                  .deepspeed = "0.16.5+abc",
                  .deepspeed_torch = "2.6",
                  .deepspeed_cuda = "12.4",
                  .deepspeed_ops = {"cpu_adam"}};
  facts.tools = {.gcc = "/usr/bin/g++",
                 .gcc_version = Release{12, 2},
                 .nvcc = "/usr/local/cuda/bin/nvcc",
                 .cuda = Release{12, 4},
                 .python = "/usr/bin/python3",
                 .headers = true,
                 .torch = "2.6.0+cu124",
                 .torch_cuda = Release{12, 4}};
  facts.capabilities = {80};
  facts.first_port = 32768;
  facts.last_port = 60999;
  facts.clock_set = true;
  return facts;
}

// Returns "T word" or "w word" for every finding after a change.
std::string found(const std::function<void(DoctorFacts&)>& change) {
  DoctorFacts facts = good();
  change(facts);
  std::string words;
  for (const Finding& each : findings_of(facts))
    words += (words.empty() ? "" : " ") + std::string(each.trouble ? "T " : "w ") +
             std::string(each.what);
  return words;
}

TEST(Doctor, AGoodNodeHasNoFinding) {
  EXPECT_EQ(found([](DoctorFacts&) {}), "");
}

TEST(Doctor, GpusAndTheirDriver) {
  EXPECT_EQ(found([](DoctorFacts& f) { f.host.driver = "470.82"; }), "T driver-too-old");
  EXPECT_EQ(found([](DoctorFacts& f) { f.python.nccl.clear(); }), "w no-nccl");
  EXPECT_EQ(found([](DoctorFacts& f) { f.capabilities = {100}; }), "T gpu-not-compiled-for");
  EXPECT_EQ(found([](DoctorFacts& f) { f.capabilities = {0}; }), "w gpu-unknown");
  EXPECT_EQ(found([](DoctorFacts& f) {
              f.python.torch_cuda.clear();
              f.tools.torch_cuda.reset();
              f.python.deepspeed.clear();
            }),
            "T torch-without-cuda");
}

TEST(Doctor, OpsOfAnotherPairOfTorchAndCudaRefuseToLoad) {
  EXPECT_EQ(found([](DoctorFacts& f) { f.python.deepspeed_torch = "2.5"; }),
            "T deepspeed-ops-differ");
  EXPECT_EQ(found([](DoctorFacts& f) { f.python.deepspeed_cuda = "12.1"; }),
            "T deepspeed-ops-differ");
  EXPECT_EQ(found([](DoctorFacts& f) { f.python.deepspeed_cuda = "0.0"; }),
            "T deepspeed-ops-differ");
  EXPECT_EQ(found([](DoctorFacts& f) { f.python.deepspeed_ops.clear(); }), "w deepspeed-no-ops");
  DoctorFacts facts = good();
  facts.python.deepspeed_torch = "2.5";
  const auto findings = findings_of(facts);
  EXPECT_EQ(findings.at(0).cure, "lockstep wheel deepspeed==0.16.5 --ops cpu_adam");
}

TEST(Doctor, PortsClockAndSlurm) {
  EXPECT_EQ(found([](DoctorFacts& f) { f.first_port = 1024; }), "w port-in-range");
  EXPECT_EQ(found([](DoctorFacts& f) { f.last_port = 32800; }), "T few-ports");
  EXPECT_EQ(found([](DoctorFacts& f) { f.port_holder = "pid 7: x"; }), "w port-taken");
  EXPECT_EQ(found([](DoctorFacts& f) { f.clock_set = false; }), "w clock-not-set");
  EXPECT_EQ(found([](DoctorFacts& f) {
              f.slurm = {true, false, false, "22.05.8"};
            }),
            "w slurm-not-configured");
  EXPECT_EQ(found([](DoctorFacts& f) {
              f.slurm = {true, true, false, "22.05.8"};
            }),
            "T slurm-not-reached");
  EXPECT_EQ(found([](DoctorFacts& f) {
              f.slurm = {true, true, true, "20.11.4"};
            }),
            "w slurm-untested");
  EXPECT_EQ(found([](DoctorFacts& f) { f.slurm = {true, true, true, "26.05.5"}; }), "");
  EXPECT_EQ(found([](DoctorFacts& f) { f.python_error = "python3 is not in PATH"; }),
            "T no-python");
}

TEST(Doctor, VersionsAreReadFromWhatCompilersSay) {
  EXPECT_EQ(gcc_release("g++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright"), (Release{12, 2}));
  EXPECT_EQ(gcc_release("g++ (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)"), (Release{11, 4}));
  EXPECT_EQ(gcc_release("x86_64-conda-linux-gnu-c++ (conda-forge gcc 13.2.0-5) 13.2.0"),
            (Release{13, 2}));
  EXPECT_FALSE(gcc_release(""));
  EXPECT_EQ(nvcc_release("Cuda compilation tools, release 13.0, V13.0.88\n"), (Release{13, 0}));
  EXPECT_FALSE(nvcc_release("nvcc"));
}

TEST(PythonFacts, AnAnswerThatMakesNoSenseIsRefused) {
  EXPECT_FALSE(read_python_facts("/p", ""));
  EXPECT_FALSE(read_python_facts("/p", "{}"));
  EXPECT_FALSE(read_python_facts("/p", R"({"version": 3})"));
}

}  // namespace
}  // namespace lockstep::setup
