#include "cloud/gcp/machines.h"

#include "base/error_testing.h"
#include "cloud/gcp/gcp_testing.h"
#include "cloud/gcp/image.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::cloud::gcp {
namespace {

using testing::Google;
using testing::operation;

constexpr const char* kList = "GET /compute/v1/projects/proj/aggregated/instances?filter=";
constexpr const char* kTaken = "GET /compute/v1/projects/proj/aggregated/operations?filter=";

std::string instance(std::string_view status, std::string_view more = "") {
  return fmt::format(
      R"({{"name":"ls-abcdefghij0123456789-1-3","status":"{}","machineType":"https://www.googleapis.com/compute/v1/projects/a-long-name-of-a-project/zones/us-central1-a/machineTypes/n1-standard-8",)"
      R"("guestAccelerators":[{{"acceleratorType":"https://x/acceleratorTypes/nvidia-tesla-v100"}}],)"
      R"("creationTimestamp":"2026-11-23T01:00:00.000-05:00",)"
      R"("networkInterfaces":[{{"networkIP":"10.128.0.2","accessConfigs":[{{"natIP":"203.0.113.5"}}]}}],)"
      R"("labels":{{"lockstep-intent":"abcdefghij0123456789","lockstep-owner":"me","lockstep-cluster":"c","lockstep-ends":"2026-11-23t07-00-00z"}}{}}})",
      status, more);
}

std::string listing_of(const std::string& one, std::string_view more = "") {
  return fmt::format(
      R"({{"items":{{"zones/us-central1-a":{{"instances":[{}]}},"zones/us-east1-b":{{"warning":{{"code":"NO_RESULTS_ON_PAGE"}}}}}}{}}})",
      one, more);
}

TEST(GcpMachines, AreReadWithAllThatTheirLabelsSay) {
  const Machine machine = read_machine(codec::parse_json(instance("RUNNING")), "us-central1-a");
  EXPECT_EQ(machine.id, "ls-abcdefghij0123456789-1-3");
  EXPECT_EQ(machine.node, 3);
  EXPECT_EQ(machine.type, "n1-standard-8+nvidia-tesla-v100");
  EXPECT_EQ(machine.region, "us-central1");
  EXPECT_EQ(machine.state, Machine::State::running);
  EXPECT_EQ(machine.address, "203.0.113.5");
  EXPECT_EQ(machine.private_address, "10.128.0.2");
  EXPECT_EQ(machine.user, "ubuntu");
  EXPECT_EQ(machine.launched_ms, 1'795'413'600'000);
  EXPECT_EQ(machine.ends_ms, 1'795'417'200'000);
  EXPECT_EQ(machine.intent, "abcdefghij0123456789");
}

TEST(GcpMachines, HaveTheStatesOfTheTable) {
  const std::vector<std::pair<const char*, Machine::State>> cases = {
      {"PROVISIONING", Machine::State::pending}, {"STAGING", Machine::State::pending},
      {"RUNNING", Machine::State::running},      {"STOPPING", Machine::State::ending},
      {"TERMINATED", Machine::State::stopped},   {"SUSPENDED", Machine::State::stopped},
      {"REPAIRING", Machine::State::unhealthy},
  };
  for (const auto& [status, state] : cases)
    EXPECT_EQ(read_machine(codec::parse_json(instance(status)), "z-a").state, state) << status;
}

class GcpList : public ::testing::Test {
 protected:
  Google google;
  Api api{testing::user_keys(), testing::bare_ground()};
};

TEST_F(GcpList, NamesZonesThatWereNotHeard) {
  google.says(
      kList, 200,
      listing_of(instance("RUNNING"), R"(,"unreachables":["projects/p/zones/europe-west4-b"])"));
  const auto listing = list_machines(api, google.web, {.regions = {}, .owner = "me"});
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->machines.size(), 1U);
  ASSERT_EQ(listing->unheard.size(), 1U);
  EXPECT_EQ(listing->unheard[0].region, "europe-west4-b");
  EXPECT_NE(google.web.asked.back().target.find("returnPartialSuccess=true"), std::string::npos);
  EXPECT_NE(google.web.asked.back().target.find("labels.lockstep-owner%3Dme"), std::string::npos);
}

TEST_F(GcpList, LeavesOutOtherRegionsAndOwners) {
  google.says(kList, 200,
              listing_of(instance("RUNNING"), R"(,"unreachables":["zones/europe-west4-b"])"));
  const auto elsewhere = list_machines(api, google.web, {.regions = {"us-east1"}, .owner = "me"});
  EXPECT_TRUE(elsewhere->machines.empty());
  EXPECT_TRUE(elsewhere->unheard.empty());
  google.says(kList, 200, listing_of(instance("RUNNING")));
  EXPECT_TRUE(list_machines(api, google.web, {.regions = {}, .owner = "you"})->machines.empty());
}

TEST_F(GcpList, SaysWhatGoogleHasTaken) {
  google.says(kList, 200,
              listing_of(instance("STOPPING", R"(,"scheduling":{"provisioningModel":"SPOT"})")));
  google.says(
      kTaken, 200,
      R"({"items":{"zones/us-central1-a":{"operations":[{"operationType":"compute.instances.preempted","endTime":"2026-11-23T06:00:00.000+00:00","targetLink":"https://www.googleapis.com/compute/v1/projects/a-long-name-of-a-project/zones/us-central1-a/instances/ls-abcdefghij0123456789-1-3"},
      {"operationType":"compute.instances.preempted","targetLink":"https://x/instances/ls-abcdefghij0123456789-1-4"},
      {"operationType":"compute.instances.preempted","targetLink":"https://x/instances/other"}]}}})");
  const auto listing = list_machines(
      api, google.web, {.regions = {}, .intent = "abcdefghij0123456789", .owner = "me"});
  ASSERT_EQ(listing->machines.size(), 2U);
  EXPECT_TRUE(listing->machines[0].taken);
  EXPECT_EQ(listing->machines[0].state, Machine::State::ending);
  EXPECT_EQ(listing->machines[0].ended_ms, 1'795'413'600'000);
  EXPECT_TRUE(listing->machines[1].taken);
  EXPECT_EQ(listing->machines[1].state, Machine::State::gone);
}

TEST_F(GcpList, IsAnErrorWhereNothingIsKnown) {
  google.says(kList, 403, R"({"error":{"message":"no","errors":[{"reason":"forbidden"}]}})");
  const auto listing = list_machines(api, google.web, {.regions = {}, .owner = "me"});
  ASSERT_FALSE(listing);
  EXPECT_EQ(code_of(listing), Errc::denied);
}

TEST_F(GcpList, EndsAllAndTakesGoneForDone) {
  constexpr const char* kDelete = "DELETE /compute/v1/projects/proj/zones/us-central1-a/instances/";
  google.says(fmt::format("{}a?requestId=", kDelete), 200, operation("DONE"));
  google.says(fmt::format("{}b?requestId=", kDelete), 404, "{}");
  google.says(fmt::format("{}c?requestId=", kDelete), 403,
              R"({"error":{"message":"no right","errors":[{"reason":"forbidden"}]}})");
  const Machine a{.id = "a", .zone = "us-central1-a"};
  const Machine b{.id = "b", .zone = "us-central1-a"};
  const Machine c{.id = "c", .zone = "us-central1-a"};
  const auto two = end_machines(api, google.web, {a, b});
  EXPECT_EQ(two[0], EndSeen::gone);
  EXPECT_EQ(two[1], EndSeen::not_found);
  const auto one = end_machines(api, google.web, {c});
  ASSERT_FALSE(one[0]);
  EXPECT_EQ(one[0].error().message, "Google Compute: the end of c: no right (forbidden)");
}

TEST_F(GcpList, FindsAnImageWithADriver) {
  google.says(
      "GET /compute/v1/projects/ubuntu-os-accelerator-images/global/images/family/"
      "ubuntu-accelerator-2404-amd64-with-nvidia-580",
      200,
      R"({"selfLink":"https://x/projects/ubuntu-os-accelerator-images/global/images/u-1","diskSizeGb":"20"})");
  const auto image = find_image(api, google.web, "", "L4", "x86_64");
  ASSERT_TRUE(image);
  EXPECT_EQ(image->path, "projects/ubuntu-os-accelerator-images/global/images/u-1");
  EXPECT_EQ(image->disk_gb, 20);
  // V100 GPUs need NVIDIA's own kernel module, which these images have.
  google.says(
      "GET /compute/v1/projects/deeplearning-platform-release/global/images?filter=family%20eq%20",
      200,
      R"({"items":[{"selfLink":"https://x/projects/d/global/images/new","creationTimestamp":"2026-10-15","deprecated":{"state":"DEPRECATED"}},
      {"selfLink":"https://x/projects/d/global/images/good","creationTimestamp":"2026-06-01","status":"READY","diskSizeGb":"50"},
      {"selfLink":"https://x/projects/d/global/images/old","creationTimestamp":"2024-06-01"}]})");
  const auto older = find_image(api, google.web, "", "V100-16GB", "x86_64");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->path, "projects/d/global/images/good");
}

TEST(GcpImages, AreNamedInSeveralWays) {
  EXPECT_EQ(image_path("projects/a/global/images/b", "p"), "projects/a/global/images/b");
  EXPECT_EQ(image_path("https://compute.googleapis.com/compute/v1/projects/a/global/images/b", "p"),
            "projects/a/global/images/b");
  EXPECT_EQ(image_path("mine", "p"), "projects/p/global/images/mine");
  EXPECT_EQ(image_path("family/mine", "p"), "projects/p/global/images/family/mine");
  EXPECT_EQ(image_path("global/images/mine", "p"), "projects/p/global/images/mine");
  for (const char* bad : {"", "a/b", "projects/a/b", "A B", "projects/../global/images/x", "x?y"})
    EXPECT_EQ(image_path(bad, "p"), "") << bad;
}

}  // namespace
}  // namespace lockstep::cloud::gcp
