#include "setup/wheel_build.h"

#include "io/digest.h"
#include "io/fd.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "a-1-py3-none-any.whl";

std::string sha_of(const fs::path& folder, const std::string& bytes) {
  fs::create_directories(folder);
  const std::string file = (folder / "bytes").string();
  EXPECT_TRUE(io::write_file(file, bytes));
  return io::sha256_of_file(file).value_or("");
}

TEST(ForeignWheel, TakesNoPlaceOfAnotherWheel) {
  const fs::path top = fs::path(::testing::TempDir()) / "foreign_wheel";
  fs::remove_all(top);
  setenv("XDG_CACHE_HOME", top.c_str(), 1);
  const std::string key = "0123456789abcdef";
  const fs::path own = top / "lockstep/wheel-builds" / key;
  fs::create_directories(own);
  ASSERT_TRUE(io::write_file((own / kName).string(), "built here"));
  const nlohmann::ordered_json manifest = {
      {"wheel", kName}, {"key", key}, {"sha256", sha_of(top, "from there")}};
  const auto one = keep_foreign_wheel(manifest, "from there", "gpu1");
  const auto other = keep_foreign_wheel(manifest, "from there", "gpu2");
  ASSERT_TRUE(one && other);
  EXPECT_EQ(io::read_file((own / kName).string()).value(), "built here");
  EXPECT_NE(one->path, other->path);
  EXPECT_EQ(io::read_file(one->path).value(), "from there");
  // `--wheel wheel:KEY` finds a wheel by the name of its folder.
  EXPECT_EQ(one->manifest["key"], fs::path(one->path).parent_path().filename().string());
  unsetenv("XDG_CACHE_HOME");
}

TEST(ForeignWheel, MustBeWhatItsManifestSays) {
  const fs::path top = fs::path(::testing::TempDir()) / "foreign_wheel_lies";
  fs::remove_all(top);
  setenv("XDG_CACHE_HOME", top.c_str(), 1);
  const std::string sha = sha_of(top, "x");
  using Manifest = nlohmann::ordered_json;
  EXPECT_TRUE(keep_foreign_wheel({{"wheel", kName}, {"key", "ab"}, {"sha256", sha}}, "x", "gpu1"));
  for (const Manifest& lie :
       {Manifest{{"wheel", "../../evil.whl"}, {"key", "ab"}, {"sha256", sha}},
        Manifest{{"wheel", kName}, {"key", "../ab"}, {"sha256", sha}},
        Manifest{{"wheel", kName}, {"key", "ab"}, {"sha256", sha_of(top, "y")}},
        Manifest{{"wheel", 1}, {"key", "ab"}, {"sha256", sha}}, Manifest{{"path", "/x"}}})
    EXPECT_FALSE(keep_foreign_wheel(lie, "x", "gpu1")) << lie;
  EXPECT_FALSE(fs::exists(top / "evil.whl"));
  unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace lockstep::setup
