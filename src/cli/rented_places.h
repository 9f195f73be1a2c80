// Clusters whose machines are rented on use, and the texts about them in lists.
#pragma once

#include "base/error.h"
#include "cli/swept.h"
#include "codec/json.h"
#include "hosts/registry.h"

#include <string>

namespace lockstep::cli {

// Makes sure that a rented cluster has its machines. Ended machines are rented again if the cluster
// was added by `cluster add --on-demand`. Does nothing for other clusters.
Status ensure_rented(const hosts::Registry& registry, const std::string& name);

// Returns facts about the rented clusters, as JSON by name: micros_per_hour, cost_micros, ends_ms,
// and the job. Starts a sweep if machines were rented in the last 30 days.
Result<nlohmann::json> rented_facts(const std::vector<hosts::Cluster>& clusters, Swept& swept);
// Returns "0.82 USD/h, 0.14 spent, ends 2026-11-24 06:49:12", or "rented at its use".
std::string rented_words(const nlohmann::json& facts, const std::string& name);

// Returns "its job (3f0a9c1e, attempt 2, working) is followed by process 4711: LOG", or "" without
// a job.
std::string rented_job_words(const nlohmann::json& facts, const std::string& name);

// Call before a cluster is removed: none of its machines may exist.
Status forget_rented(const std::string& name);

}  // namespace lockstep::cli
