// Two nodes of a step in this process. The overlays are files that the test makes.
#include "jobs/on_slurm/node_wheels.h"

#include "base/error_testing.h"
#include "codec/json_members.h"
#include "io/fd.h"
#include "jobs/on_slurm/job_wheels.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <thread>

namespace lockstep::jobs::on_slurm {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

constexpr const char* kFile = "a-1-py3-none-any.whl";

class NodeWheelsTest : public ::testing::Test {
 protected:
  NodeWheelsTest() {
    fs::create_directories(folder_.path());
    fs::create_directories(folder_.at("reports"));
    bytes_.assign(3UL << 20, 'w');
    EXPECT_TRUE(io::write_file(top_ + "/" + kFile, bytes_));
    EXPECT_TRUE(io::write_file(folder_.at("token"), "secret\n"));
  }
  ~NodeWheelsTest() override { fs::remove_all(top_); }

  void give_wheels(int spare = 0) const {
    fs::create_directories(top_ + "/disk");
    ASSERT_TRUE(add_wheels(folder_, {top_ + "/" + kFile},
                           {.wheels = {}, .place = top_ + "/disk", .spare = spare}));
  }
  // A second node sees the same folder of the job, and has a disk of its own.
  slurm::JobFolder seen_by_second() const {
    slurm::JobFolder seen(top_ + "/seen");
    fs::create_directories(seen.path());
    fs::create_directories(top_ + "/disk2");
    for (const char* name : {"token", "wheels", "reports"})
      fs::create_symlink(folder_.at(name), seen.at(name));
    JobWheels wheels = wheels_from_text(*io::read_file(folder_.at(kWheelsFile))).value();
    wheels.place = top_ + "/disk2";
    EXPECT_TRUE(io::write_file(seen.at(kWheelsFile), wheels_text(wheels)));
    return seen;
  }
  WheelStep step(int number, const std::string& nodes = "n0") {
    return {.node = "n" + std::to_string(number),
            .number = number,
            .nodes = nodes,
            .job = std::to_string(getpid()),
            .python = "sh",
            .path = "/own",
            .patience = std::chrono::milliseconds(1000),
            .run = [this](const Texts& argv) -> Result<proc::ToolOutput> {
              called_.push_back(argv);
              return proc::ToolOutput{.out = "", .err = "", .exit = {}};
            },
            .kept_overlay =
                [this](const setup::OverlayRequest& request) -> std::optional<setup::Overlay> {
              return kept_ ? std::optional(setup::Overlay{.path = request.folder + "/kept"})
                           : std::nullopt;
            },
            .make_overlay = [this](const setup::OverlayRequest& request) -> Result<setup::Overlay> {
              EXPECT_EQ(*io::read_file(request.wheel, 8UL << 20), bytes_) << request.wheel;
              EXPECT_EQ(request.local, Texts{"/own"});
              if (!broken_.empty()) return fail(Errc::unavailable, broken_);
              return setup::Overlay{.path = request.folder + "/made", .imported = {"a"}};
            }};
  }
  // Reads a record that a node wrote into the folder of the job.
  nlohmann::json noted(const std::string& name) const {
    return codec::parse_json(io::read_file(folder_.at(name)).value_or(""));
  }

  static std::string new_folder() {
    std::string name = "/tmp/lockstep-node-XXXXXX";
    return mkdtemp(name.data());
  }

  const std::string top_ = new_folder();
  const slurm::JobFolder folder_{top_ + "/job"};
  std::string bytes_;
  std::string broken_;  // why the wheel does not work on the nodes
  bool kept_ = false;
  std::vector<Texts> called_;
};

TEST_F(NodeWheelsTest, AJobWithoutWheelsNeedsNothing) {
  const auto wheels = put_node_wheels(folder_, {}, step(0));
  ASSERT_TRUE(wheels) << wheels.error().message;
  EXPECT_TRUE(wheels->paths.empty());
}

TEST_F(NodeWheelsTest, TheOnlyNodeReadsTheJobsFolder) {
  give_wheels();
  const auto wheels = put_node_wheels(folder_, {}, step(0));
  ASSERT_TRUE(wheels) << wheels.error().message;
  ASSERT_EQ(wheels->paths.size(), 1U);
  EXPECT_TRUE(wheels->paths[0].ends_with("/overlays/made"));
  EXPECT_EQ(wheels->modules, Texts{"a"});
  const auto rows = noted("wheels/0-n0.json");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["wheel"], kFile);
  EXPECT_EQ(rows[0]["from"], "the job's folder");
}

// A shared file system would be read by all nodes at once.
TEST_F(NodeWheelsTest, TheSecondNodeTakesTheWheelFromTheFirst) {
  give_wheels();
  const slurm::JobFolder second = seen_by_second();
  const std::string nodes = "localhost,n1";
  const WheelStep one = step(0, nodes);
  const WheelStep two = step(1, nodes);
  std::jthread first([&] { EXPECT_TRUE(put_node_wheels(folder_, {}, one)); });
  const auto wheels = put_node_wheels(second, {}, two);
  first.join();
  ASSERT_TRUE(wheels) << wheels.error().message;
  const auto rows = noted("wheels/0-n1.json");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["from"], "localhost");
  EXPECT_FALSE(fs::is_empty(top_ + "/disk2"));
  for (const auto& entry : fs::recursive_directory_iterator(top_ + "/disk2"))
    EXPECT_NE(entry.path().filename(), kFile) << "the copy is removed";
}

TEST_F(NodeWheelsTest, WithoutTheFirstNodeTheSecondReadsTheJobsFolder) {
  give_wheels();
  for (const char* nodes : {"localhost,n1", "no-such-host.invalid,n1"}) {
    const auto wheels = put_node_wheels(folder_, {}, step(1, nodes));
    ASSERT_TRUE(wheels) << wheels.error().message;
    EXPECT_EQ(wheels->paths.size(), 1U);
  }
}

// The pre-flight has left n0 out, so n1 is the first node.
TEST_F(NodeWheelsTest, NothingIsExpectedOfANodeThatWasLeftOut) {
  give_wheels();
  const auto wheels = put_node_wheels(folder_, {"localhost"}, step(1, "localhost,n1"));
  ASSERT_TRUE(wheels) << wheels.error().message;
  EXPECT_EQ(noted("wheels/0-n1.json")[0]["from"], "the job's folder");
}

TEST_F(NodeWheelsTest, AWheelThatWasImportedBeforeIsNotImportedAgain) {
  give_wheels();
  kept_ = true;
  broken_ = "must not be made";
  const auto wheels = put_node_wheels(folder_, {}, step(0));
  ASSERT_TRUE(wheels) << wheels.error().message;
  EXPECT_TRUE(wheels->paths.at(0).ends_with("/overlays/kept"));
  EXPECT_TRUE(noted("wheels/0-n0.json").empty());
}

// The other agents would wait for this node in vain.
TEST_F(NodeWheelsTest, AWheelThatDoesNotWorkEndsTheJob) {
  give_wheels();
  broken_ = "import a: no libcuda";
  const auto failed = put_node_wheels(folder_, {}, step(0));
  EXPECT_EQ(failed.error().message, broken_);
  ASSERT_EQ(called_.size(), 1U);
  EXPECT_EQ(called_[0], (Texts{"scancel", "--signal=TERM", std::to_string(getpid())}));
  const auto report = codec::parse_json(*io::read_file(folder_.report(0, "n0")));
  EXPECT_EQ(report["outcome"], "failed");
  EXPECT_EQ(report["root_cause"]["message"], broken_);
}

TEST_F(NodeWheelsTest, AJobWithASpareNodeGoesOnWithoutThisOne) {
  give_wheels(1);
  broken_ = "import a: no libcuda";
  EXPECT_FALSE(put_node_wheels(folder_, {}, step(0)));
  EXPECT_TRUE(called_.empty());
  const auto report = codec::parse_json(*io::read_file(folder_.report(0, "n0")));
  EXPECT_EQ(report["outcome"], "left out");
  broken_.clear();
  const auto wheels = put_node_wheels(folder_, {}, step(1, "n0,n1"));
  ASSERT_TRUE(wheels) << wheels.error().message;
  EXPECT_EQ(wheels->failed_first, Texts{"n0"}) << "the agents meet at n1";
  // A second failure is one too many.
  broken_ = "import a: no libcuda";
  EXPECT_FALSE(put_node_wheels(folder_, {}, step(2, "n[0-2]")));
  EXPECT_EQ(called_.size(), 1U);
}

TEST_F(NodeWheelsTest, ADamagedListOfWheelsIsAnError) {
  ASSERT_TRUE(io::write_file(folder_.at(kWheelsFile), R"({"wheels":[{"file":"../x"}]})"));
  EXPECT_EQ(code_of(put_node_wheels(folder_, {}, step(0))), Errc::corrupt);
}

TEST_F(NodeWheelsTest, SlurmsVariablesNameTheStep) {
  setenv("SLURM_NODEID", "3", 1);
  setenv("SLURMD_NODENAME", "n3", 1);
  setenv("VIRTUAL_ENV", "/venv", 1);
  EXPECT_EQ(this_step().number, 3);
  EXPECT_EQ(this_step().node, "n3");
  EXPECT_EQ(this_step().python, "/venv/bin/python3");
  setenv("PYTHON_EXEC", "/opt/python3", 1);
  EXPECT_EQ(this_step().python, "/opt/python3");
  for (const char* name : {"SLURM_NODEID", "SLURMD_NODENAME", "VIRTUAL_ENV", "PYTHON_EXEC"})
    unsetenv(name);
  EXPECT_EQ(this_step().python, "python3");
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
