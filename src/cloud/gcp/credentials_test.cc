#include "cloud/gcp/credentials.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace lockstep::cloud::gcp {
namespace {

constexpr const char* kAccount =
    R"({"type":"service_account","project_id":"from-file","private_key_id":"k","private_key":"PEM","client_email":"a@b","token_uri":"http://127.0.0.1:5/token"})";

class GcpCredentials : public ::testing::Test {
 protected:
  GcpCredentials() {
    std::string name = (std::filesystem::temp_directory_path() / "gcpXXXXXX").string();
    folder = mkdtemp(name.data());
    ground.env = [this](std::string_view what) -> std::optional<std::string> {
      const auto at = env.find(std::string(what));
      return at == env.end() ? std::nullopt : std::optional(at->second);
    };
    ground.home = folder;
  }
  ~GcpCredentials() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    return path;
  }

  std::string folder;
  std::map<std::string, std::string> env;
  Ground ground;
};

TEST_F(GcpCredentials, AreTheFileThatIsNamed) {
  env["GOOGLE_APPLICATION_CREDENTIALS"] = write("key.json", kAccount);
  const auto found = find_credentials(ground);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Credentials::Kind::service_account);
  EXPECT_EQ(found->project, "from-file");
  EXPECT_EQ(found->token_uri, "http://127.0.0.1:5/token");
  EXPECT_FALSE(found->exposed);
  env["GOOGLE_CLOUD_PROJECT"] = "named";
  EXPECT_EQ(find_credentials(ground)->project, "named");
}

TEST_F(GcpCredentials, AreAUsersWithGcloudsProject) {
  write(".config/gcloud/application_default_credentials.json",
        R"({"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r"})");
  const auto without = find_credentials(ground);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().hint.find("GOOGLE_CLOUD_PROJECT"), std::string::npos);
  write(".config/gcloud/active_config", "work\n");
  write(".config/gcloud/configurations/config_work",
        "[core]\naccount = a@b\nproject = of-gcloud\n");
  const auto found = find_credentials(ground);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Credentials::Kind::authorized_user);
  EXPECT_EQ(found->project, "of-gcloud");
  EXPECT_EQ(found->token_uri, kTokenUri);
}

TEST_F(GcpCredentials, MayBeThereNowhere) {
  const auto found = find_credentials(ground);
  ASSERT_FALSE(found);
  EXPECT_EQ(code_of(found), Errc::not_found);
  env["GOOGLE_APPLICATION_CREDENTIALS"] = folder + "/missing.json";
  EXPECT_FALSE(find_credentials(ground));
}

TEST_F(GcpCredentials, OfOtherKindsNeedGcloud) {
  env["GOOGLE_APPLICATION_CREDENTIALS"] =
      write("key.json", R"({"type":"external_account","quota_project_id":"p"})");
  EXPECT_NE(find_credentials(ground).error().message.find("gcloud"), std::string::npos);
  std::filesystem::permissions(write("bin/gcloud", "#!/bin/sh\n"),
                               std::filesystem::perms::owner_all);
  env["PATH"] = folder + "/bin";
  const auto found = find_credentials(ground);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Credentials::Kind::gcloud);
}

TEST_F(GcpCredentials, AreGcloudsOnceSomebodyHasLoggedIn) {
  std::filesystem::permissions(write("bin/gcloud", "#!/bin/sh\n"),
                               std::filesystem::perms::owner_all);
  env["PATH"] = folder + "/bin";
  EXPECT_EQ(code_of(find_credentials(ground)), Errc::not_found);
  env["CLOUDSDK_CONFIG"] = folder + "/sdk";
  write("sdk/credentials.db", "");
  EXPECT_EQ(code_of(find_credentials(ground)), Errc::invalid_input) << "no project";
  env["CLOUDSDK_CORE_PROJECT"] = "p";
  EXPECT_EQ(find_credentials(ground)->where, "gcloud");
}

TEST_F(GcpCredentials, AreRefusedWithoutBeingShown) {
  for (const char* text :
       {"", "not json: hunter2", R"({"private_key":"hunter2"})",
        R"({"type":"service_account","private_key":"hunter2"})",
        R"({"type":"authorized_user","refresh_token":"hunter2","client_id":"x"})"}) {
    const auto found = parse_credentials(text, "key.json");
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().message.find("hunter2"), std::string::npos);
    EXPECT_EQ(found.error().message.find("key.json: "), 0U);
  }
  env["GOOGLE_APPLICATION_CREDENTIALS"] = write("key.json", kAccount);
  env["GOOGLE_CLOUD_PROJECT"] = "a/../b";
  EXPECT_FALSE(find_credentials(ground));
}

}  // namespace
}  // namespace lockstep::cloud::gcp
