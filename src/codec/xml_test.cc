#include "codec/xml.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::codec {
namespace {

TEST(XmlReader, AnAnswerOfEc2) {
  const auto root = parse_xml(
      R"(<?xml version="1.0" encoding="UTF-8"?>
<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
  <requestId>r-1</requestId>
  <reservationSet>
    <item><instancesSet><item>
      <instanceId>i-1</instanceId>
      <instanceState><code>16</code><name>running</name></instanceState>
      <reason/>
    </item></instancesSet></item>
    <item><instancesSet/></item>
  </reservationSet>
</DescribeInstancesResponse>)");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->name, "DescribeInstancesResponse");
  EXPECT_EQ(root->value, "");
  EXPECT_EQ(root->text("requestId"), "r-1");
  ASSERT_EQ(root->list("reservationSet").size(), 2U);
  const XmlNode& first = root->list("reservationSet")[0];
  ASSERT_EQ(first.list("instancesSet").size(), 1U);
  const XmlNode& machine = first.list("instancesSet")[0];
  EXPECT_EQ(machine.text("instanceId"), "i-1");
  EXPECT_EQ(machine.text("instanceState/name"), "running");
  EXPECT_NE(machine.child("reason"), nullptr);
  EXPECT_EQ(machine.child("instanceState/none"), nullptr);
  EXPECT_EQ(machine.text("none/name"), "");
  EXPECT_TRUE(root->list("none").empty());
}

TEST(XmlReader, TextPrefixesAndEncodings) {
  const auto root =
      parse_xml("<s:a x='1' xmlns:s='u'><s:b> 1 &lt; 2 &#x1234;<![CDATA[<&]]> </s:b></s:a>");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->name, "a");
  EXPECT_EQ(root->text("b"), " 1 < 2 \xe1\x88\xb4<& ");
  EXPECT_EQ(parse_xml("<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe4</a>")->value, "\xc3\xa4");
}

TEST(XmlReader, RefusesWhatItWasNotAskedToRead) {
  const std::pair<std::string, const char*> refused[] = {
      {"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
       "the XML is refused: it declares a document type"},
      {"<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
       "the XML is refused: it declares a document type"},
      {"<a>\n&b;</a>", "not XML: undefined entity at line 2"},
      {"", "not XML: no element found at line 1"},
      {"<html>", "not XML: no element found at line 1"},
      {"{}", "not XML: not well-formed (invalid token) at line 1"},
      {"<a/><b/>", "not XML: junk after document element at line 1"}};
  for (const auto& [text, message] : refused) {
    const auto root = parse_xml(text);
    ASSERT_FALSE(root) << text;
    EXPECT_EQ(root.error().message, message);
    EXPECT_EQ(code_of(root), Errc::corrupt);
  }
}

TEST(XmlReader, IsBounded) {
  EXPECT_TRUE(parse_xml("<a><b><c/><c/></b></a>", {.bytes = 22, .depth = 3, .nodes = 4}));
  EXPECT_EQ(parse_xml("<a><b><c/><c/></b></a>", {.bytes = 21}).error().message,
            "the XML is larger than 21 bytes");
  EXPECT_EQ(parse_xml("<a><b><c/><c/></b></a>", {.depth = 2}).error().message,
            "the XML is refused: it is nested too deep");
  EXPECT_EQ(parse_xml("<a><b><c/><c/></b></a>", {.nodes = 3}).error().message,
            "the XML is refused: it has too many elements");
  std::string deep;
  for (int i = 0; i < 100'000; ++i)
    deep += "<a>";
  EXPECT_FALSE(parse_xml(deep));
}

}  // namespace
}  // namespace lockstep::codec
