#include "jobs/on_slurm/job_wheels.h"

#include "jobs/on_slurm/node_wheels.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep::jobs::on_slurm {
namespace {

namespace fs = std::filesystem;

const std::string kSha(64, 'a');

TEST(JobWheels, TextThereAndBack) {
  const auto wheels =
      wheels_from_text(wheels_text({{{"a-1-py3-none-any.whl", kSha, 7}}, "/scratch", 2}));
  ASSERT_TRUE(wheels) << wheels.error().message;
  ASSERT_EQ(wheels->wheels.size(), 1U);
  EXPECT_EQ(wheels->wheels[0].file, "a-1-py3-none-any.whl");
  EXPECT_EQ(wheels->wheels[0].sha256, kSha);
  EXPECT_EQ(wheels->wheels[0].bytes, 7U);
  EXPECT_EQ(wheels->place, "/scratch");
  EXPECT_EQ(wheels->spare, 2);
}

TEST(JobWheels, DamagedTexts) {
  const auto text = [](const std::string& file, const std::string& sha, const std::string& bytes,
                       const std::string& place = "/tmp") {
    return R"({"wheels":[{"file":")" + file + R"(","sha256":")" + sha + R"(","bytes":)" + bytes +
           R"(}],"place":")" + place + "\"}";
  };
  const std::string name = "a-1-py3-none-any.whl";
  EXPECT_TRUE(wheels_from_text(text(name, kSha, "7")));
  for (const std::string& each :
       {text("../" + name, kSha, "7"), text("a.whl", kSha, "7"), text(name, "a", "7"),
        text(name, std::string(64, '/'), "7"), text(name, kSha, "-1"),
        text(name, kSha, "99999999999"), text(name, kSha, "7", "tmp"), std::string("{}"),
        std::string("[]"), std::string()})
    EXPECT_FALSE(wheels_from_text(each)) << each;
}

TEST(JobWheels, FilesAndKeys) {
  const fs::path top = fs::path(::testing::TempDir()) / ("job_wheels." + std::to_string(getpid()));
  fs::remove_all(top);
  fs::create_directories(top / "lockstep/wheel-builds/0123abcd");
  setenv("XDG_CACHE_HOME", top.c_str(), 1);
  const std::string name = "a-1-py3-none-any.whl";
  const std::string built = (top / "lockstep/wheel-builds/0123abcd" / name).string();
  const std::string own = (top / name).string();
  std::ofstream(built) << "x";
  std::ofstream(own) << "x";
  std::ofstream(top / "notes.txt") << "x";
  using Paths = std::vector<std::string>;
  EXPECT_EQ(find_wheels({name}, top), (Paths{own}));
  EXPECT_EQ(find_wheels({"wheel:" + own}, "/"), (Paths{own}));
  EXPECT_EQ(find_wheels({"wheel:0123abcd"}, "/"), (Paths{built}));
  const auto refusal = [&](const Paths& given) {
    const auto found = find_wheels(given, top);
    return found ? "taken" : found.error().message;
  };
  EXPECT_EQ(refusal({"wheel:0123"}), "--wheel: there is no 0123");
  EXPECT_EQ(refusal({"notes.txt"}), "--wheel: notes.txt must be a wheel");
  EXPECT_EQ(refusal({name, "wheel:0123abcd"}), "--wheel: " + name + " is given twice");
  unsetenv("XDG_CACHE_HOME");
}

TEST(NodeWheels, NobodyWaitsForANodeThatIsLeftOut) {
  const auto left = [](const std::vector<std::string>& names, int self) {
    std::vector<std::string> nodes = {"n1", "n2", "n3", "n4"};
    const int place = leave_out(names, self, nodes);
    return std::pair(place, nodes);
  };
  using Nodes = std::vector<std::string>;
  EXPECT_EQ(left({}, 2), std::pair(2, Nodes({"n1", "n2", "n3", "n4"})));
  EXPECT_EQ(left({"n2"}, 2), std::pair(1, Nodes({"n1", "n3", "n4"})));
  EXPECT_EQ(left({"n1", "n4"}, 1), std::pair(0, Nodes({"n2", "n3"})));
  EXPECT_EQ(left({"n4", "other"}, 0), std::pair(0, Nodes({"n1", "n2", "n3"})));
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
