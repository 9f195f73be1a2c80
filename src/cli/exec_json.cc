#include "cli/exec_json.h"

#include "base/utf8.h"
#include "codec/base64.h"

#include <string>
#include <utility>

namespace lockstep::cli {
namespace {

void add_text(nlohmann::ordered_json& json, const std::string& name, const std::string& bytes) {
  json[name] = bytes;  // print_json() replaces bytes that are not UTF-8
  if (!is_utf8(bytes)) json[name + "_base64"] = codec::base64_encode(bytes);
}

}  // namespace

nlohmann::ordered_json exec_json(const std::vector<hosts::HostPlace>& hosts,
                                 const std::vector<hosts::HostEnding>& endings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const hosts::HostEnding& ending = endings[i];
    nlohmann::ordered_json host{{"name", hosts[i].name}, {"code", ending.code}};
    if (ending.signal != 0) host["signal"] = ending.signal;
    if (!ending.error.empty()) host["error"] = ending.error;
    add_text(host, "stdout", ending.out);
    add_text(host, "stderr", ending.err);
    list.push_back(std::move(host));
  }
  return {{"code", hosts::code_of(endings)}, {"hosts", std::move(list)}};
}

}  // namespace lockstep::cli
