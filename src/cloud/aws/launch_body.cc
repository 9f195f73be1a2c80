#include "cloud/aws/launch_body.h"

#include "cloud/time_text.h"
#include "codec/base64.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::aws {
namespace {

void add_disk(Query& query, const LaunchSpec& spec, const Image& image) {
  const int size = std::max({spec.disk_gb, spec.offer.min_disk_gb, image.min_gb});
  query.add("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true")
      .add("BlockDeviceMapping.1.Ebs.VolumeSize", size)
      .add("BlockDeviceMapping.1.Ebs.VolumeType", "gp3")
      .add("BlockDeviceMapping.1.DeviceName", image.root_device);
}

// Tags the machine and the volume. A volume that stays behind then names its owner.
void add_tags(Query& query, const LaunchSpec& spec) {
  const std::pair<const char*, std::string> tags[] = {
      {"lockstep:intent", spec.intent},
      {"lockstep:owner", spec.owner},
      {"lockstep:cluster", spec.cluster},
      {"lockstep:ends", iso_time(spec.ends_ms)},
      {"Name", fmt::format("lockstep-{}", spec.cluster)},
  };
  int number = 0;
  for (const char* kind : {"instance", "volume"}) {
    const std::string prefix = fmt::format("TagSpecification.{}.", ++number);
    query.add(prefix + "ResourceType", kind);
    int tag = 0;
    for (const auto& [key, value] : tags) {
      const std::string one = fmt::format("{}Tag.{}.", prefix, ++tag);
      query.add(one + "Key", key).add(one + "Value", value);
    }
  }
}

void add_market(Query& query, const LaunchSpec& spec) {
  if (!spec.offer.spot) return;
  query.add("InstanceMarketOptions.MarketType", "spot");
  if (spec.max_spot)
    query.add("InstanceMarketOptions.SpotOptions.MaxPrice", dollars_text(*spec.max_spot, 6));
  // A persistent request would launch again by itself after a preemption.
  query.add("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time")
      .add("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate");
}

}  // namespace

std::string launch_token(const LaunchSpec& spec) {
  return fmt::format("lockstep-{}-{}-{}", spec.intent, spec.attempt, spec.node);
}

Query launch_query(const LaunchSpec& spec, const LaunchPlace& place, const std::string& token) {
  Query query("RunInstances");
  // Equal counts: AWS launches all machines or none.
  query.add("MaxCount", spec.count).add("MinCount", spec.count);
  add_disk(query, spec, place.image);
  query.add("ImageId", place.image.id).add("InstanceType", spec.offer.type);
  if (!spec.user_data.empty()) query.add("UserData", codec::base64_encode(spec.user_data));
  add_tags(query, spec);
  add_market(query, spec);
  // Require tokens of metadata version 2. A hop limit of 2 lets containers reach the service.
  query.add("MetadataOptions.HttpTokens", "required")
      .add("MetadataOptions.HttpPutResponseHopLimit", 2);
  if (token.empty()) query.add("DryRun", "true");
  // A power-off inside the machine then ends its bill, without any key on the machine.
  query.add("InstanceInitiatedShutdownBehavior", "terminate");
  if (!token.empty()) query.add("ClientToken", token);
  if (place.subnet.empty()) return query;
  // AWS refuses a security group at the top level together with network interfaces.
  query.add("NetworkInterface.1.AssociatePublicIpAddress", "true")
      .add("NetworkInterface.1.DeleteOnTermination", "true")
      .add("NetworkInterface.1.DeviceIndex", 0)
      .add("NetworkInterface.1.SecurityGroupId.1", place.group)
      .add("NetworkInterface.1.SubnetId", place.subnet);
  return query;
}

}  // namespace lockstep::cloud::aws
