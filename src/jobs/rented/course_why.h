// What the journal adds to the explanation of a job on rented machines. Pure.
#pragma once

#include "cloud/rental.h"
#include "cloud/rented_job.h"
#include "jobs/job_why.h"

#include <optional>

namespace lockstep::jobs::rented {

// Adds which machines each earlier attempt lost and when, and what the course does now. rental: of
// the course; nullopt: it cannot be read.
Explanation with_course(Explanation said, const cloud::RentedJob& course,
                        const std::optional<cloud::Rental>& rental);

}  // namespace lockstep::jobs::rented
