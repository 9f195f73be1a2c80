// Finds a job by the word that a user wrote, wherever the job runs. No other file knows all places.
#pragma once

#include "jobs/job.h"
#include "jobs/job_book.h"
#include "jobs/places/job_refresh.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::jobs::places {

// Finds a job by id, name, beginning of an id, Slurm's number, or pid-N of a run on this machine. A
// job whose rental another host owns has the name of its cluster, which comes before others.
// Slurm's number may be that of a job that Lockstep did not submit, or of an earlier run of a
// chain. Errors as in JobBook::find(), and those of an unreadable journal of rentals.
Result<KnownJob> find_job(const JobBook& book, const std::string& word,
                          const PlacesWorld& world = real_places());

// The rule for a name of several running jobs: take the newest, or refuse the name.
enum class Several { newest, refuse };
// Like find_job(), but prefers a running job of that name over a newer, ended job.
Result<KnownJob> find_running_job(const JobBook& book, const std::string& word, Several several,
                                  const PlacesWorld& world = real_places());

// Like find_job(), for a question about the job's state. Any Slurm number is found, because Slurm
// is not asked about the number here, and a word of digits means Slurm's number before the
// beginning of an id of ours. invalid_input: the word names no job.
Result<KnownJob> find_job_to_explain(const JobBook& book, const std::string& word,
                                     const PlacesWorld& world = real_places());

// Finds a job where the same word may be a host: by its whole id, or by Slurm's number. A number is
// never a host. nullopt: the word may be a host. Other errors as in find_job().
Result<std::optional<KnownJob>> find_by_id(const JobBook& book, const std::string& word,
                                           const PlacesWorld& world = real_places());

// A row of a sweep, named by a word like "JOB[12]" or "JOB[lr=1e-3]".
struct RowOfJob {
  KnownJob job;
  std::size_t row;
};
// Finds the job as find_job(), and its row. nullopt: the word names no row. invalid_input: the job
// has no such row, or only another host has the record of its rows. verb: the command, for hints.
Result<std::optional<RowOfJob>> find_row_of_job(const JobBook& book, const std::string& word,
                                                const std::string& verb,
                                                const PlacesWorld& world = real_places());

std::unique_ptr<Job> open_job(KnownJob record, const PlacesWorld& world = real_places());

}  // namespace lockstep::jobs::places
