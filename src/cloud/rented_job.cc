#include "cloud/rented_job.h"

#include "codec/json_fields.h"

#include <array>
#include <utility>

namespace lockstep::cloud {
namespace {

constexpr std::array<std::string_view, 5> kJobStages = {"renting", "working", "lost", "ending",
                                                        "ended"};
constexpr codec::JsonLimits kJobLimits{.bytes = 4U << 20};

}  // namespace

static void fields(codec::JsonFields& io, RentedJob& job) {
  io.needed("rental", job.rental);
  io.require(!job.rental.empty(), "rental", "the id of a rental");
  io("cluster", job.cluster);
  io("words", job.words);
  io.needed("folder", job.folder);
  io.require(job.folder.starts_with('/'), "folder", "an absolute path");
  io("run_id", job.run_id);
  io.needed("stage", job.stage, kJobStages);
  io("losses", job.losses, {0, 1'000'000});
  io("brought", job.brought);
  io("job", job.job);
  io("succeeded", job.succeeded);
  io("code", job.code, {0, 255});
  io("note", job.note);
  io("began_ms", job.began_ms);
  io("host", job.host);
  io("root", job.root);
  io("tree", job.tree);
  io("back", job.back);
  io("client", job.client);
  io("follower", job.follower);
  io("ahead", job.ahead);
}

void end_unseen(RentedJob& job, std::string unseen) {
  if (!job.goes_on()) return;
  const bool all = job.succeeded && job.back.empty();
  job.stage = RentedJob::Stage::ending;
  job.code = all ? 0 : 1;
  job.note = all             ? "the job had succeeded"
             : job.succeeded ? "the job had succeeded, but its outputs are not here"
                             : std::move(unseen);
}

const char* rented_job_stage(RentedJob::Stage stage) {
  return kJobStages[static_cast<std::size_t>(stage)].data();
}

std::string rented_job_json(const RentedJob& job) {
  return codec::print_json(nlohmann::json(codec::write_fields(job)));
}

// The reader tolerates records of other versions, since a journal outlives an update of lockstep.
Result<RentedJob> parse_rented_job(std::string_view json) {
  RentedJob job;
  if (!codec::read_fields(codec::parse_json(json, kJobLimits), job, codec::kTolerantJson))
    return fail(Errc::corrupt, "the journal's record of a job is damaged");
  return job;
}

}  // namespace lockstep::cloud
