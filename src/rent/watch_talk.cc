#include "rent/watch_talk.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "hosts/registry.h"
#include "job/job_spec.h"
#include "rent/guard_talk.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr std::array<const char*, 5> kWatchVerbs = {"watch", "claim", "ask", "drop", "fetched"};
constexpr std::size_t kMostBack = 256;
constexpr std::size_t kMostPath = 4096;
constexpr std::size_t kMostTree = 255;
constexpr std::size_t kMostNote = 1000;

// Below a folder: "" is the folder itself.
bool is_path_below(const std::string& path) {
  if (path.size() > kMostPath || path.find('\0') != std::string::npos) return false;
  if (path.empty()) return true;
  const std::vector<std::string> parts = split(path, '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.empty() || part == "." || part == "..";
  });
}

bool is_tree(const std::string& name) {
  return name.empty() || (name.size() <= kMostTree && name.find('/') == std::string::npos &&
                          is_path_below(name) && name.front() != '.');
}

bool is_yes(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

std::string watch_word_text(const WatchWord& word) {
  return codec::print_json(
      nlohmann::ordered_json{{"verb", kWatchVerbs[static_cast<std::size_t>(word.verb)]},
                             {"rental", word.rental},
                             {"cluster", word.cluster},
                             {"tree", word.tree},
                             {"back", word.back},
                             {"job", word.job}});
}

Result<WatchWord> read_watch_word(std::string_view text) {
  const nlohmann::json object = codec::parse_json(text);
  const auto refuse = [](const char* what) {
    return fail(Errc::corrupt, fmt::format("invalid message about a job: {}", what));
  };
  if (!object.is_object()) return refuse("it must be a JSON object");
  const std::string verb = codec::text_member(object, "verb");
  const auto at = std::find(kWatchVerbs.begin(), kWatchVerbs.end(), verb);
  if (at == kWatchVerbs.end()) return refuse("its verb");
  WatchWord word{.verb = static_cast<WatchVerb>(at - kWatchVerbs.begin()),
                 .rental = codec::text_member(object, "rental"),
                 .cluster = codec::text_member(object, "cluster"),
                 .tree = codec::text_member(object, "tree"),
                 .back = codec::texts_member(object, "back"),
                 .job = codec::text_member(object, "job")};
  if (!is_rental_id(word.rental)) return refuse("the rental's id");
  LOCKSTEP_TRY(hosts::check_cluster_name(word.cluster));
  if (!is_tree(word.tree) || word.back.size() > kMostBack ||
      !std::all_of(word.back.begin(), word.back.end(), is_path_below))
    return refuse("its outputs");
  if (!word.job.empty() && !job::is_job_id(word.job)) return refuse("its name");
  return word;
}

nlohmann::ordered_json watch_answer_json(const WatchAnswer& answer) {
  return {{"known", answer.known}, {"taken", answer.taken},
          {"ended", answer.ended}, {"code", answer.code},
          {"note", answer.note},   {"root", answer.root},
          {"whole", answer.whole}, {"back", answer.back},
          {"logs", answer.logs},   {"log_endings", answer.log_endings}};
}

Result<WatchAnswer> read_watch_answer(const nlohmann::json& object) {
  WatchAnswer answer{.known = is_yes(object, "known"),
                     .taken = is_yes(object, "taken"),
                     .ended = is_yes(object, "ended"),
                     .code = static_cast<int>(
                         std::clamp<std::int64_t>(codec::integer_member(object, "code"), 0, 255)),
                     .note = printable(codec::text_member(object, "note"), kMostNote),
                     .root = codec::text_member(object, "root"),
                     .whole = is_yes(object, "whole"),
                     .back = codec::texts_member(object, "back"),
                     .logs = codec::text_member(object, "logs"),
                     .log_endings = codec::texts_member(object, "log_endings")};
  for (const std::string& path : {answer.root, answer.logs})
    if (!path.empty() && (path.front() != '/' || !is_path_below(path.substr(1))))
      return fail(Errc::corrupt, "invalid answer");
  const auto known = [](const std::string& ending) {
    return std::find(kFollowLogEndings.begin(), kFollowLogEndings.end(), ending) !=
           kFollowLogEndings.end();
  };
  if (!std::all_of(answer.log_endings.begin(), answer.log_endings.end(), known))
    return fail(Errc::corrupt, "invalid answer");
  return answer;
}

}  // namespace lockstep::rent
