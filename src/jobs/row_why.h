// Explains one row of a sweep: `lockstep why 'JOB[12]'`.
#pragma once

#include "base/error.h"
#include "codec/json.h"
#include "jobs/job.h"
#include "jobs/job_rows.h"

#include <cstddef>
#include <vector>

namespace lockstep::jobs {

// Explains a row by what explain_rows() has about it, and by the failure reports of its nodes.
// Pure.
Explanation explain_row(const KnownJob& job, const nlohmann::ordered_json& row,
                        const std::vector<nlohmann::json>& reports);

// Asks for the row, for the reports of a failed row, and for what the ranks of a running row do.
// row: of the job's sweep. unavailable: no host that answers knows the rows.
Result<Explanation> why_row(Job& job, std::size_t row);

}  // namespace lockstep::jobs
