// What a cloud's servers answer in XML: any bytes end in a tree within the limits or in one line of
// error. Limits are small, so that they are met.
#include "base/error.h"
#include "codec/xml.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string_view>

namespace {
using namespace lockstep;  // NOLINT

constexpr codec::XmlLimits kSmall{.bytes = 1U << 14, .depth = 12, .nodes = 300};

// Depth of the tree; counts its nodes.
size_t measure(const codec::XmlNode& node, size_t& nodes) {
  size_t deepest = 0;
  ++nodes;
  LOCKSTEP_CHECK(node.children.empty() || node.value.empty());
  LOCKSTEP_CHECK(node.name.find(':') == std::string::npos);
  for (const codec::XmlNode& child : node.children) {
    LOCKSTEP_CHECK(node.child(child.name) != nullptr);
    deepest = std::max(deepest, measure(child, nodes));
  }
  return deepest + 1;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto root = codec::parse_xml(bytes, kSmall);
  if (!root) {
    LOCKSTEP_CHECK(root.error().message.find('\n') == std::string::npos);
    return 0;
  }
  size_t nodes = 0;
  LOCKSTEP_CHECK(bytes.size() <= kSmall.bytes);
  LOCKSTEP_CHECK(measure(*root, nodes) <= kSmall.depth && nodes <= kSmall.nodes);
  (void)root->text("instancesSet/item/instanceState");
  (void)root->list("/a//");
  return 0;
}
