// Clusters whose machines are rented at their use, and what is said of them in lists.
#pragma once

#include "base/error.h"
#include "cli/swept.h"
#include "codec/json.h"
#include "hosts/registry.h"

#include <string>

namespace lockstep::cli {

// Sees to it that a rented cluster has its machines: those that have ended are rented again where
// the cluster is one of `cluster add --on-demand`. Others: nothing is done.
Status ensure_rented(const hosts::Registry& registry, const std::string& name);

// Rate, cost so far and end of the clusters that are rented now, as JSON by name: micros_per_hour,
// cost_micros, ends_ms, and their job. Where machines were rented in the last month, a sweep has
// begun.
Result<nlohmann::json> rented_facts(const std::vector<hosts::Cluster>& clusters, Swept& swept);
// "0.82 USD/h, 0.14 spent, ends 2026-11-24 06:49:12", or "rented at its use".
std::string rented_words(const nlohmann::json& facts, const std::string& name);

// "its job (3f0a9c1e, attempt 2, working) is followed by process 4711: LOG", or "" where it has
// none.
std::string rented_job_words(const nlohmann::json& facts, const std::string& name);

// Before a cluster is forgotten: none of its machines may be there.
Status forget_rented(const std::string& name);

}  // namespace lockstep::cli
