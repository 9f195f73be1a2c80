#include "host/xid.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace lockstep::host {
namespace {

constexpr std::size_t kMostXidLine = 8192;
constexpr std::size_t kMostXidText = 160;

struct Meaning {
  int code;
  std::string_view words;
};
// The codes that ended trainings, by NVIDIA's list of XID errors.
constexpr std::array<Meaning, 17> kMeanings = {{
    {13, "an exception in a kernel, mostly a mistake of the program"},
    {31, "a kernel has used an address outside of its memory"},
    {43, "a kernel was stopped, the GPU is well"},
    {45, "work was ended because of an earlier error, or because its process has ended"},
    {48, "an ECC error of two bits, which cannot be corrected"},
    {61, "the GPU's microcontroller has stopped"},
    {62, "the GPU's microcontroller has halted"},
    {63, "a bad row of memory was replaced, the GPU needs a reset"},
    {64, "a bad row of memory could not be replaced"},
    {69, "an exception of the graphics engine"},
    {74, "an error of NVLink"},
    {79, "the GPU has fallen off the bus"},
    {92, "many ECC errors of one bit"},
    {94, "an ECC error that hit one program only"},
    {95, "an ECC error that may have hit every program"},
    {119, "the GPU's own processor (GSP) does not answer"},
    {120, "the GPU's own processor (GSP) has failed"},
}};

std::string_view meaning_of(int code) {
  const auto* const at = std::find_if(kMeanings.begin(), kMeanings.end(),
                                      [&](const Meaning& each) { return each.code == code; });
  return at == kMeanings.end() ? std::string_view() : at->words;
}

// Priorities below 8 have the kernel's own facility. The kernel gives another one to what programs
// write to /dev/kmsg.
bool is_of_kernel(std::string_view head) {
  const auto priority = parse_int(head.substr(0, head.find(',')));
  return priority && *priority >= 0 && *priority < 8;
}

bool is_pci(std::string_view text) {
  return !text.empty() && text.size() <= 16 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '.';
  });
}

}  // namespace

std::optional<Xid> parse_xid(std::string_view line) {
  constexpr std::string_view kHead = "NVRM: Xid (PCI:";
  line = line.substr(0, kMostXidLine);
  const std::size_t text = line.find(';');
  if (text == std::string_view::npos || !is_of_kernel(line)) return std::nullopt;
  line.remove_prefix(text + 1);
  if (!line.starts_with(kHead)) return std::nullopt;
  line.remove_prefix(kHead.size());
  const std::size_t end = line.find("): ");
  if (end == std::string_view::npos || !is_pci(line.substr(0, end))) return std::nullopt;
  Xid xid{.pci = to_lower(std::string(line.substr(0, end)))};
  line.remove_prefix(end + 3);
  const std::size_t comma = line.find(',');
  const auto code = parse_int(strip(line.substr(0, comma)));
  if (!code || *code < 0 || *code > 9999) return std::nullopt;
  xid.code = static_cast<int>(*code);
  if (comma != std::string_view::npos)
    xid.text = printable(std::string(strip(line.substr(comma + 1))), kMostXidText);
  return xid;
}

std::string xid_words(const Xid& xid, std::optional<int> gpu) {
  const std::string_view meaning = meaning_of(xid.code);
  const std::string place =
      gpu ? fmt::format("GPU {} ({})", *gpu, xid.pci) : "the GPU at " + xid.pci;
  const std::string words = meaning.empty() ? xid.text : std::string(meaning);
  return fmt::format("XID {} on {}{}{}", xid.code, place, words.empty() ? "" : ": ", words);
}

}  // namespace lockstep::host
