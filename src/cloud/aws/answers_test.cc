#include "cloud/aws/answers.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::aws {
namespace {

Xml xml(std::string_view text) {
  auto root = codec::parse_xml(text);
  EXPECT_TRUE(root) << text;
  return root ? std::move(*root) : Xml{};
}

TEST(AwsAnswers, PricesAreRoundedUpAndOddOnesAreNone) {
  EXPECT_EQ(micros_of("1.0060000000"), 1'006'000);
  EXPECT_EQ(micros_of("0.3012005000"), 301'201);
  EXPECT_EQ(micros_of("55.04"), 55'040'000);
  EXPECT_EQ(micros_of("700.0000000000"), std::nullopt);
  EXPECT_EQ(micros_of("700.01"), 700'010'000);
  for (const char* none : {"", "0.0000000000", "0", "-1", "x", "1e3", "nan"})
    EXPECT_EQ(micros_of(none), std::nullopt) << none;
}

TEST(AwsAnswers, LocalZonesAreLeftOut) {
  const auto usable = [](const char* type, const char* state, const char* opted) {
    return is_usable_zone(xml(std::string("<item><zoneType>") + type + "</zoneType><zoneState>" +
                              state + "</zoneState><optInStatus>" + opted +
                              "</optInStatus></item>"));
  };
  EXPECT_TRUE(usable("availability-zone", "available", "opt-in-not-required"));
  EXPECT_TRUE(usable("availability-zone", "available", "opted-in"));
  EXPECT_FALSE(usable("local-zone", "available", "opted-in"));
  EXPECT_FALSE(usable("wavelength-zone", "available", "opted-in"));
  EXPECT_FALSE(usable("availability-zone", "impaired", "opt-in-not-required"));
  EXPECT_FALSE(usable("availability-zone", "available", "not-opted-in"));
}

TEST(AwsAnswers, AMachineIsReadWithItsTags) {
  const Machine machine = machine_of(
      xml("<item><instanceId>i-1</instanceId><clientToken>lockstep-i-2-0</clientToken>"
          "<instanceState><code>16</code><name>running</name>"
          "</instanceState><instanceType>g6.xlarge</instanceType><ipAddress>203.0.113.5</ipAddress>"
          "<privateIpAddress>10.0.0.5</privateIpAddress><launchTime>2026-11-23T06:00:00.000Z"
          "</launchTime><placement><availabilityZone>us-east-1b</availabilityZone></placement>"
          "<tagSet><item><key>lockstep:intent</key><value>i</value></item><item><key>lockstep:ends"
          "</key><value>2026-11-23T07:00:00Z</value></item><item><key>Name</key><value>n</value>"
          "</item></tagSet></item>"),
      "us-east-1");
  EXPECT_EQ(machine.state, Machine::State::running);
  EXPECT_EQ(machine.address, "203.0.113.5");
  EXPECT_EQ(machine.private_address, "10.0.0.5");
  EXPECT_EQ(machine.zone, "us-east-1b");
  EXPECT_EQ(machine.launched_ms, 1'795'413'600'000);
  EXPECT_EQ(machine.token, "lockstep-i-2-0");
  EXPECT_EQ(machine.ends_ms, 1'795'417'200'000);
  EXPECT_EQ(machine.intent, "i");
  EXPECT_EQ(machine.user, "ubuntu");
  EXPECT_FALSE(machine.taken);
}

TEST(AwsAnswers, HowAMachineEndedIsTold) {
  const auto ended = [](const char* reason) {
    return machine_of(xml(std::string("<item><instanceState><name>terminated</name></instanceState>"
                                      "<stateReason><code>") +
                          reason + "</code></stateReason></item>"),
                      "us-east-1");
  };
  EXPECT_TRUE(ended("Server.SpotInstanceTermination").taken);
  EXPECT_TRUE(ended("Server.InsufficientInstanceCapacity").no_room);
  EXPECT_FALSE(ended("Client.InstanceInitiatedShutdown").taken);
  EXPECT_EQ(ended("Client.InternalError").why, "Client.InternalError");
  EXPECT_EQ(ended("x").state, Machine::State::gone);
}

TEST(AwsAnswers, AGroupSaysWhoMayComeIn) {
  const Group group = group_of(
      xml("<item><groupId>sg-1</groupId><vpcId>vpc-1</vpcId><ipPermissions><item><ipProtocol>tcp"
          "</ipProtocol><fromPort>22</fromPort><toPort>22</toPort><ipRanges><item><cidrIp>"
          "198.51.100.7/32</cidrIp></item></ipRanges><ipv6Ranges><item><cidrIpv6>2001:db8::1/128"
          "</cidrIpv6></item></ipv6Ranges></item><item><ipProtocol>tcp</ipProtocol><fromPort>80"
          "</fromPort><ipRanges><item><cidrIp>0.0.0.0/0</cidrIp></item></ipRanges></item><item>"
          "<ipProtocol>-1</ipProtocol><groups><item><groupId>sg-1</groupId></item></groups></item>"
          "</ipPermissions></item>"));
  EXPECT_EQ(group.ssh_from, (std::vector<std::string>{"198.51.100.7/32", "2001:db8::1/128"}));
  EXPECT_TRUE(group.inside);
}

TEST(AwsAnswers, TheNewestImageOfTheFirstNameIsTaken) {
  const Xml root =
      xml("<R><set>"
          "<item><imageId>ami-1</imageId><imageState>available</imageState><name>B 1</name>"
          "<creationDate>2026-09-01T00:00:00.000Z</creationDate><rootDeviceName>/dev/xvda"
          "</rootDeviceName></item>"
          "<item><imageId>ami-2</imageId><imageState>available</imageState><name>A 1</name>"
          "<creationDate>2026-07-01T00:00:00.000Z</creationDate><rootDeviceName>/dev/sda1"
          "</rootDeviceName></item>"
          "<item><imageId>ami-3</imageId><imageState>available</imageState><name>A 2</name>"
          "<creationDate>2026-08-01T00:00:00.000Z</creationDate><rootDeviceName>/dev/sda1"
          "</rootDeviceName></item>"
          "<item><imageId>ami-4</imageId><imageState>pending</imageState><name>A 3</name>"
          "<creationDate>2026-10-01T00:00:00.000Z</creationDate><rootDeviceName>/dev/sda1"
          "</rootDeviceName></item></set></R>");
  EXPECT_EQ(newest_image(root.list("set"), {"A ", "B "}), "ami-3");
  EXPECT_EQ(newest_image(root.list("set"), {"C ", "B "}), "ami-1");
  EXPECT_EQ(newest_image(root.list("set"), {"C "}), "");
}

std::string product(const char* place, const char* unit, const char* usd) {
  return std::string(R"({"product":{"attributes":{"regionCode":"us-west-2","locationType":")") +
         place + R"("}},"terms":{"OnDemand":{"t":{"priceDimensions":{"d":{"unit":")" + unit +
         R"(","pricePerUnit":{"USD":")" + usd + R"("}}}}}}})";
}

TEST(AwsAnswers, ProductsAreTextsWithJsonInThem) {
  nlohmann::json page;
  for (const std::string& text :
       {product("AWS Region", "Hrs", "1.0060000000"), product("AWS Local Zone", "Hrs", "9.0"),
        product("AWS Region", "Quantity", "9.0"), product("AWS Region", "Hrs", "0.0"),
        std::string("no json"), std::string(R"({"product":1,"terms":[1,"x"]})"),
        std::string(R"({"product":{"attributes":{}},"terms":{"OnDemand":{"t":3}}})")})
    page["PriceList"].push_back(text);
  const auto prices = product_prices(page);
  ASSERT_EQ(prices.size(), 1U);
  EXPECT_EQ(prices[0].region, "us-west-2");
  EXPECT_EQ(prices[0].per_hour, 1'006'000);
  EXPECT_TRUE(product_prices(nlohmann::json::array()).empty());
}

}  // namespace
}  // namespace lockstep::cloud::aws
