// XML that a server answers, as a small tree. Bounded in bytes, depth and nodes; document types and
// entities of their own are refused. Attributes and the prefixes of namespaces are dropped.
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
  std::string value;  // its text, where it has no children
  std::vector<XmlNode> children;

  // The first child of that name, or of a path: "instanceState/name". nullptr: there is none.
  const XmlNode* child(std::string_view path) const;
  // That child's text; "" where there is none.
  std::string_view text(std::string_view path) const;
  // The children of that child; none where there is none. For EC2's sets: list("reservationSet").
  const std::vector<XmlNode>& list(std::string_view path) const;
};

// The root.
Result<XmlNode> parse_xml(std::string_view text, const XmlLimits& limits = {});

}  // namespace lockstep::codec
