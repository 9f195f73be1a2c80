#include "cloud/rented_job.h"

#include "codec/json.h"
#include "codec/json_members.h"

#include <algorithm>
#include <array>

namespace lockstep::cloud {
namespace {

constexpr std::array<const char*, 5> kJobStages = {"renting", "working", "lost", "ending", "ended"};
constexpr codec::JsonLimits kJobLimits{.bytes = 4U << 20};
constexpr std::int64_t kMostLosses = 1'000'000;

}  // namespace

const char* rented_job_stage(RentedJob::Stage stage) {
  return kJobStages[static_cast<std::size_t>(stage)];
}

std::string rented_job_json(const RentedJob& job) {
  return codec::print_json(nlohmann::json{
      {"rental", job.rental},   {"cluster", job.cluster},   {"words", job.words},
      {"folder", job.folder},   {"run_id", job.run_id},     {"stage", rented_job_stage(job.stage)},
      {"losses", job.losses},   {"brought", job.brought},   {"job", job.job},
      {"code", job.code},       {"note", job.note},         {"began_ms", job.began_ms},
      {"root", job.root},       {"tree", job.tree},         {"back", job.back},
      {"watcher", job.watcher}, {"heard_ms", job.heard_ms}, {"taken", job.taken},
      {"whole", job.whole},     {"follower", job.follower}});
}

Result<RentedJob> parse_rented_job(std::string_view json) {
  const nlohmann::json object = codec::parse_json(json, kJobLimits);
  const auto text = [&](const char* name) { return codec::text_member(object, name); };
  const auto is_set = [&](const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_boolean() && found->get<bool>();
  };
  const auto stage =
      !object.is_object()
          ? kJobStages.end()
          : std::find_if(kJobStages.begin(), kJobStages.end(),
                         [name = text("stage")](const char* one) { return name == one; });
  if (stage == kJobStages.end() || text("rental").empty() || !text("folder").starts_with('/'))
    return fail(Errc::corrupt, "what the journal has of a job makes no sense");
  RentedJob job{.rental = text("rental"),
                .cluster = text("cluster"),
                .words = codec::texts_member(object, "words"),
                .folder = text("folder"),
                .run_id = text("run_id"),
                .stage = static_cast<RentedJob::Stage>(stage - kJobStages.begin()),
                .job = text("job"),
                .note = text("note"),
                .began_ms = codec::integer_member(object, "began_ms"),
                .root = text("root"),
                .tree = text("tree"),
                .back = codec::texts_member(object, "back"),
                .watcher = text("watcher"),
                .heard_ms = codec::integer_member(object, "heard_ms"),
                .taken = is_set("taken"),
                .whole = text("whole"),
                .follower = codec::integer_member(object, "follower")};
  job.losses = static_cast<int>(
      std::clamp<std::int64_t>(codec::integer_member(object, "losses"), 0, kMostLosses));
  job.code =
      static_cast<int>(std::clamp<std::int64_t>(codec::integer_member(object, "code"), 0, 255));
  job.brought = is_set("brought");
  return job;
}

}  // namespace lockstep::cloud
