#include "cloud/aws/launch_body.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::aws {
namespace {

LaunchSpec some_spec() {
  LaunchSpec spec;
  spec.intent = "i";
  spec.owner = "o";
  spec.cluster = "c";
  spec.disk_gb = 200;
  spec.ends_ms = 1'795'413'600'000;
  spec.offer.type = "g6.xlarge";
  spec.offer.spot = true;
  return spec;
}

LaunchPlace some_place() {
  return {.image = {.id = "ami-1", .root_device = "/dev/sda1", .min_gb = 75, .arch = "x86_64"},
          .subnet = "subnet-1",
          .group = "sg-1"};
}

std::string tags(const char* number, const char* kind) {
  std::string text = std::string("&TagSpecification.") + number + ".ResourceType=" + kind;
  int tag = 0;
  for (const char* pair : {"lockstep%3Aintent=i", "lockstep%3Aowner=o", "lockstep%3Acluster=c",
                           "lockstep%3Aends=2026-11-23T06%3A00%3A00Z", "Name=lockstep-c"}) {
    const std::string both = pair;
    const std::size_t mark = both.find('=');
    const std::string prefix =
        std::string("&TagSpecification.") + number + ".Tag." + std::to_string(++tag);
    text += prefix;
    text += ".Key=" + both.substr(0, mark);
    text += prefix;
    text += ".Value=" + both.substr(mark + 1);
  }
  return text;
}

// The body equals the print of AWS's own JavaScript library, apart from tags and user data.
TEST(AwsLaunch, IsWhatTheVendorsLibraryPrints) {
  EXPECT_EQ(
      launch_query(some_spec(), some_place(), "t1").body(),
      "Action=RunInstances&Version=2016-11-15&MaxCount=1&MinCount=1"
      "&BlockDeviceMapping.1.Ebs.DeleteOnTermination=true&BlockDeviceMapping.1.Ebs.VolumeSize=200"
      "&BlockDeviceMapping.1.Ebs.VolumeType=gp3&BlockDeviceMapping.1.DeviceName=%2Fdev%2Fsda1"
      "&ImageId=ami-1&InstanceType=g6.xlarge" +
          tags("1", "instance") + tags("2", "volume") +
          "&InstanceMarketOptions.MarketType=spot"
          "&InstanceMarketOptions.SpotOptions.SpotInstanceType=one-time"
          "&InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=terminate"
          "&MetadataOptions.HttpTokens=required&MetadataOptions.HttpPutResponseHopLimit=2"
          "&InstanceInitiatedShutdownBehavior=terminate&ClientToken=t1"
          "&NetworkInterface.1.AssociatePublicIpAddress=true"
          "&NetworkInterface.1.DeleteOnTermination=true&NetworkInterface.1.DeviceIndex=0"
          "&NetworkInterface.1.SecurityGroupId.1=sg-1&NetworkInterface.1.SubnetId=subnet-1");
}

TEST(AwsLaunch, ATrialHasNoTokenAndNoPlace) {
  const std::string body = launch_query(some_spec(), {.image = some_place().image}, "").body();
  EXPECT_NE(body.find("&DryRun=true"), std::string::npos);
  EXPECT_EQ(body.find("ClientToken"), std::string::npos);
  EXPECT_EQ(body.find("NetworkInterface"), std::string::npos);
}

TEST(AwsLaunch, APriceIsNamedOnlyWhereOneIsGiven) {
  LaunchSpec spec = some_spec();
  spec.max_spot = 1'234'567;
  EXPECT_NE(launch_query(spec, some_place(), "t").body().find("SpotOptions.MaxPrice=1.234567&"),
            std::string::npos);
  spec.offer.spot = false;
  EXPECT_EQ(launch_query(spec, some_place(), "t").body().find("Market"), std::string::npos);
}

TEST(AwsLaunch, TheDiskIsAsLargeAsItsImage) {
  LaunchSpec spec = some_spec();
  spec.disk_gb = 20;
  EXPECT_NE(launch_query(spec, some_place(), "t").body().find("VolumeSize=75&"), std::string::npos);
}

TEST(AwsLaunch, ATokenIsOfOneAttempt) {
  LaunchSpec spec = some_spec();
  spec.intent = std::string(20, 'x');
  const std::string first = launch_token(spec);
  EXPECT_LE(first.size(), 64U);
  EXPECT_EQ(launch_token(spec), first);
  spec.attempt = 2;
  EXPECT_NE(launch_token(spec), first);
}

}  // namespace
}  // namespace lockstep::cloud::aws
