// Hosts that answer about their jobs, for tests of places.
#pragma once

#include "jobs/on_slurm/slurm_world_testing.h"
#include "jobs/places/job_refresh.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::places {

class PlacesTest : public on_slurm::SlurmWorldTest {
 protected:
  PlacesWorld places() {
    return {.run = [this](io::Loop&, const hosts::CommandRequest& request)
                -> Result<std::vector<hosts::HostEnding>> {
              asked_.push_back(request);
              std::vector<hosts::HostEnding> endings;
              for (const hosts::HostPlace& host : request.hosts)
                endings.push_back(answer(host.name, request.argv));
              return endings;
            },
            .slurm = world(),
            .courses = [this]() -> Result<std::vector<cloud::RentedJob>> {
              if (!readable_) return fail(Errc::corrupt, "damaged");
              return courses_;
            },
            .owned = {.ask = [this](const cloud::RentedJob& course,
                                    const std::vector<std::string>&) -> Result<std::string> {
              asked_owners_.push_back(course.host);
              if (!owner_) return fail(Errc::unavailable, course.host + ": no route");
              return rented::owned_state_text(*owner_);
            }}};
  }
  // Another host begins to rent for a job.
  void owned(const std::string& cluster, const std::string& id = {}) {
    courses_.push_back({.rental = "rental-of-" + cluster,
                        .cluster = cluster,
                        .words = {},
                        .folder = "/",
                        .stage = cloud::RentedJob::Stage::working,
                        .job = id,
                        .note = "train.py",
                        .began_ms = 5000,
                        .host = "me@desk"});
  }
  JobBook book() const { return JobBook::open(top_ + "/book").value(); }
  static hosts::HostPlace host(const std::string& name) {
    return {.name = name, .target = {.host = name}};
  }
  KnownJob add(const std::string& id, const std::string& name, const std::vector<std::string>& on,
               JobState state = JobState::running) const {
    KnownJob job{.id = id, .name = name, .place = "gpus", .command = "train.py"};
    for (const std::string& each : on)
      job.nodes.push_back(host(each));
    job.created_ms = ++created_;
    job.status = {.state = state};
    EXPECT_TRUE(book().add(job));
    return job;
  }
  // From now on the host knows this part of the job.
  void tells(const std::string& host, const std::string& id, const job::PartState& state) {
    job::JobRecord record;
    record.spec.id = id;
    record.spec.name = "train";
    record.state = state;
    known_[host][id] = std::move(record);
  }
  hosts::HostEnding answer(const std::string& host, const std::vector<std::string>& argv) {
    if (const auto odd = odd_.find(host); odd != odd_.end()) return odd->second;
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (std::size_t i = 2; i < argv.size(); ++i)
      if (const auto at = known_[host].find(argv[i]); at != known_[host].end())
        all.push_back(to_json(at->second));
    return {.out = codec::print_json(all) + "\n"};
  }

  std::vector<hosts::CommandRequest> asked_;
  std::map<std::string, std::map<std::string, job::JobRecord>> known_;
  std::map<std::string, hosts::HostEnding> odd_;  // hosts with another answer
  std::vector<cloud::RentedJob> courses_;
  bool readable_ = true;  // courses_
  // The answer of a rental's owner about the job; nullopt: the owner is not reached.
  std::optional<rented::OwnedState> owner_ = rented::OwnedState{.known = true, .state = "running"};
  std::vector<std::string> asked_owners_;
  const hosts::HostEnding silent_{.code = 255, .error = "no route to host"};
  mutable std::int64_t created_ = 1000;
};

}  // namespace lockstep::jobs::places
