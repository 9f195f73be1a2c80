#include "cloud/gcp/requests.h"

#include "cloud/gcp/gcp_testing.h"
#include "cloud/gcp/values.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::gcp {
namespace {

using testing::sample_spec;

const LaunchWords kWords{.image = "projects/u/global/images/i", .disk_gb = 200};

TEST(Requests, OfOneMachineHaveAllThatKeepsItCheap) {
  LaunchSpec spec = sample_spec();
  spec.offer.spot = true;
  const auto body = codec::parse_json(insert_body(spec, kWords));
  ASSERT_TRUE(body.is_object());
  EXPECT_EQ(text_at(body, "name"), "ls-abcdefghij0123456789-2-0");
  EXPECT_EQ(text_at(body, "machineType"), "zones/us-central1-a/machineTypes/g2-standard-4");
  EXPECT_EQ(codec::print_json(at(body, "scheduling")),
            R"({"automaticRestart":false,"instanceTerminationAction":"DELETE",)"
            R"("maxRunDuration":{"seconds":"3600"},"onHostMaintenance":"TERMINATE",)"
            R"("provisioningModel":"SPOT"})");
  EXPECT_EQ(codec::print_json(at(body, "disks/0")),
            R"({"autoDelete":true,"boot":true,"initializeParams":{"diskSizeGb":"200",)"
            R"("diskType":"zones/us-central1-a/diskTypes/pd-balanced",)"
            R"("sourceImage":"projects/u/global/images/i"}})");
  EXPECT_EQ(text_at(body, "metadata/items/0/value"), spec.user_data);
  EXPECT_EQ(text_at(body, "metadata/items/1/value"), "ubuntu:ssh-ed25519 AAAA lockstep");
  EXPECT_EQ(text_at(body, "labels/lockstep-cluster"), "my_cluster");
  EXPECT_EQ(text_at(body, "labels/lockstep-ends"), "2026-11-23t06-00-00z");
  EXPECT_EQ(text_at(body, "tags/items/0"), "lockstep-owner00000000001");
  EXPECT_TRUE(at(body, "serviceAccounts").is_null());
  EXPECT_TRUE(at(body, "guestAccelerators").is_null());
}

TEST(Requests, GiveN1ItsAcceleratorAndG4ItsDisk) {
  LaunchSpec spec = sample_spec();
  spec.offer.type = "n1-standard-8+nvidia-tesla-v100";
  spec.offer.gpus = 2;
  auto body = codec::parse_json(insert_body(spec, kWords));
  EXPECT_EQ(text_at(body, "machineType"), "zones/us-central1-a/machineTypes/n1-standard-8");
  EXPECT_EQ(codec::print_json(at(body, "guestAccelerators")),
            R"([{"acceleratorCount":2,"acceleratorType":)"
            R"("zones/us-central1-a/acceleratorTypes/nvidia-tesla-v100"}])");
  EXPECT_EQ(text_at(body, "scheduling/provisioningModel"), "STANDARD");
  spec.offer.type = "g4-standard-48";
  body = codec::parse_json(insert_body(spec, kWords));
  EXPECT_EQ(last_part(text_at(body, "disks/0/initializeParams/diskType")), "hyperdisk-balanced");
}

TEST(Requests, AskGooglesDeepLearningImageForTheDriver) {
  LaunchSpec spec = sample_spec();
  spec.offer.gpus = 1;
  const std::string wanted = R"({"key":"install-nvidia-driver","value":"True"})";
  const LaunchWords google{
      .image = "projects/deeplearning-platform-release/global/images/common-cu129", .disk_gb = 200};
  EXPECT_NE(insert_body(spec, google).find(wanted), std::string::npos);
  EXPECT_EQ(insert_body(spec, kWords).find(wanted), std::string::npos);
  spec.offer.gpus = 0;
  EXPECT_EQ(insert_body(spec, google).find(wanted), std::string::npos);
}

TEST(Requests, OfAGangAreAllOrNoneWithBareNames) {
  LaunchSpec spec = sample_spec();
  spec.count = 2;
  const auto body = codec::parse_json(bulk_body(spec, kWords));
  EXPECT_EQ(text_at(body, "count"), "2");
  EXPECT_EQ(text_at(body, "minCount"), "2");
  EXPECT_EQ(codec::print_json(at(body, "perInstanceProperties")),
            R"({"ls-abcdefghij0123456789-2-0":{},"ls-abcdefghij0123456789-2-1":{}})");
  EXPECT_EQ(text_at(body, "instanceProperties/machineType"), "g2-standard-4");
  EXPECT_EQ(text_at(body, "instanceProperties/disks/0/initializeParams/diskType"), "pd-balanced");
}

TEST(Requests, LimitTheRunToWhatGoogleTakes) {
  LaunchSpec spec = sample_spec();
  spec.lifetime_s = 5;
  EXPECT_NE(insert_body(spec, kWords).find(R"("seconds":"30")"), std::string::npos);
  spec.lifetime_s = 1'000'000'000;
  EXPECT_NE(insert_body(spec, kWords).find(R"("seconds":"10368000")"), std::string::npos);
  spec.lifetime_s = 0;
  EXPECT_EQ(insert_body(spec, kWords).find("instanceTerminationAction"), std::string::npos);
}

TEST(Requests, HaveTheSameIdForTheSameAttemptOnly) {
  LaunchSpec spec = sample_spec();
  const std::string id = request_id(spec);
  EXPECT_EQ(id.size(), 36U);
  EXPECT_EQ(id[14], '5');
  EXPECT_EQ(request_id(spec), id);
  spec.attempt = 3;
  EXPECT_NE(request_id(spec), id);
  EXPECT_EQ(node_of_name(machine_name(spec, 12)), 12);
  EXPECT_EQ(node_of_name("other-machine"), -1);
  for (const int node : {0, 12})
    EXPECT_EQ(request_id_of_name(machine_name(spec, node)), request_id(spec));
  EXPECT_EQ(request_id_of_name("other-machine"), "");
}

TEST(Requests, KeepTimesInLabels) {
  EXPECT_EQ(parse_time_label(time_label(1'795'413'600'000)), 1'795'413'600'000);
  EXPECT_EQ(parse_time_label(""), 0);
  EXPECT_EQ(parse_time_label("yesterday-afternoon0"), 0);
  EXPECT_EQ(label_of("Ann's / Cluster"), "ann_s___cluster");
  EXPECT_EQ(label_of(std::string(100, 'A')), std::string(63, 'a'));
}

}  // namespace
}  // namespace lockstep::cloud::gcp
