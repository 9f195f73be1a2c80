// Builds the tree from expat's events.
#include "codec/xml.h"

#include <fmt/core.h>

#include <expat.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace lockstep::codec {
namespace {

// expat 2.9 (Debian 13) deprecates the call that older versions have.
std::uint64_t line_of_error(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
  return XML_GetCurrentLineNumber64(parser);
#else
  return XML_GetCurrentLineNumber(parser);
#endif
}

std::string_view without_prefix(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

// Receives expat's events. Moves each child into its parent only at the child's end, so that no
// pointer into a growing list exists.
class XmlBuilder {
 public:
  XmlBuilder(XML_Parser parser, const XmlLimits& limits) : parser_(parser), limits_(limits) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(
        parser,
        [](void* self, const char* name, const char** /*attributes*/) { of(self).begin(name); },
        [](void* self, const char* /*name*/) { of(self).end(); });
    XML_SetCharacterDataHandler(parser, [](void* self, const char* text, int size) {
      of(self).text({text, static_cast<std::size_t>(size)});
    });
    // A document type can declare entities that expand to gigabytes, or name files of this machine.
    XML_SetStartDoctypeDeclHandler(parser,
                                   [](void* self, const char*, const char*, const char*, int) {
                                     of(self).refuse("it declares a document type");
                                   });
  }

  bool refused() const { return !why_.empty(); }
  const std::string& why() const { return why_; }
  XmlNode take_root() { return std::move(root_); }

 private:
  static XmlBuilder& of(void* self) { return *static_cast<XmlBuilder*>(self); }

  void begin(std::string_view name) {
    // expat may deliver more events after a stop.
    if (refused()) return;
    if (open_.size() >= limits_.depth) return refuse("it is nested too deep");
    if (++nodes_ > limits_.nodes) return refuse("it has too many elements");
    // Servers choose namespace prefixes freely.
    open_.push_back({std::string(without_prefix(name)), {}, {}});
  }

  void end() {
    if (refused()) return;
    XmlNode node = std::move(open_.back());
    open_.pop_back();
    // The text between children is only indentation.
    if (!node.children.empty()) node.value.clear();
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().children.push_back(std::move(node));
    }
  }

  void text(std::string_view piece) {
    // expat delivers a text in pieces.
    if (!refused() && open_.back().children.empty()) open_.back().value += piece;
  }

  void refuse(std::string_view why) {
    why_ = why;
    XML_StopParser(parser_, XML_FALSE);
  }

  XML_Parser parser_;
  XmlLimits limits_;
  std::vector<XmlNode> open_;  // from the root to the current element
  XmlNode root_;
  std::size_t nodes_ = 0;
  std::string why_;
};

}  // namespace

const XmlNode* XmlNode::child(std::string_view path) const {
  const std::string_view first = path.substr(0, path.find('/'));
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const XmlNode& each) { return each.name == first; });
  if (found == children.end()) return nullptr;
  return first.size() == path.size() ? &*found : found->child(path.substr(first.size() + 1));
}

std::string_view XmlNode::text(std::string_view path) const {
  const XmlNode* found = child(path);
  return found == nullptr ? std::string_view{} : std::string_view(found->value);
}

const std::vector<XmlNode>& XmlNode::list(std::string_view path) const {
  static const std::vector<XmlNode> none;
  const XmlNode* found = child(path);
  return found == nullptr ? none : found->children;
}

Result<XmlNode> parse_xml(std::string_view text, const XmlLimits& limits) {
  if (text.size() > limits.bytes)
    return fail(Errc::corrupt, fmt::format("the XML is larger than {} bytes", limits.bytes));
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), XML_ParserFree);
  LOCKSTEP_CHECK(parser != nullptr);
  XmlBuilder builder(parser.get(), limits);
  const XML_Status status =
      XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  // The builder's own reason comes first: stopping expat leaves a less useful error.
  if (builder.refused()) return fail(Errc::corrupt, "the XML is refused: " + builder.why());
  if (status != XML_STATUS_OK) {
    return fail(Errc::corrupt, fmt::format("not XML: {} at line {}",
                                           XML_ErrorString(XML_GetErrorCode(parser.get())),
                                           line_of_error(parser.get())));
  }
  return builder.take_root();
}

}  // namespace lockstep::codec
