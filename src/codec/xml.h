// A server's XML answer as a small tree. Bounded in bytes, depth and nodes. Document types, and so
// custom entities, are refused. Attributes and namespace prefixes are dropped.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::codec {

struct XmlLimits {
  std::size_t bytes = 16U << 20;
  std::size_t depth = 64;
  std::size_t nodes = 500'000;
};

struct XmlNode {
  std::string name;
  std::string value;  // text of a node without children
  std::vector<XmlNode> children;

  // Returns the first child of that name, or of a path: "instanceState/name". nullptr: none.
  const XmlNode* child(std::string_view path) const;
  // Returns that child's text, or "".
  std::string_view text(std::string_view path) const;
  // Returns the children of that child, or none. For EC2's sets: list("reservationSet").
  const std::vector<XmlNode>& list(std::string_view path) const;
};

// Parses XML and returns the root. Fails with corrupt.
Result<XmlNode> parse_xml(std::string_view text, const XmlLimits& limits = {});

}  // namespace lockstep::codec
