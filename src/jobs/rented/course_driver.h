// Carries out the course of a job on rented machines, which course.h decides: rents, runs the job,
// brings its outputs back, and terminates the machines. Before each step that another process may
// have to continue, writes into the journal what that process needs.
#pragma once

#include "cloud/journal.h"
#include "jobs/rented/course.h"
#include "jobs/rented/course_job.h"
#include "jobs/rented/course_machines.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {

struct CourseSettings {
  std::vector<std::string> back = {};                       // --back, as given
  std::size_t rows = 0;                                     // of a sweep; 0: another job
  std::optional<std::chrono::milliseconds> wait = {};       // --wait; nullopt: for ever
  std::optional<Error> cannot_begin = {};                   // why this process must not begin it
  std::function<void(const std::string& text)> tell;        // prints a line
  std::function<void(const Error& error)> tell_error = {};  // prints an error
};

// Returns why a process without the environment of the job's command must not begin the job:
// another environment lacks these variables, or has other values. nullopt: the job needs none.
// secrets, env: --secret and --env as given.
std::optional<Error> lost_variables(const std::vector<std::string>& secrets,
                                    const std::vector<std::string>& env);

// One process of the course, through all attempts of the job. References must outlive the object.
class CourseDriver {
 public:
  CourseDriver(cloud::Journal& journal, cloud::RentedJob record, CourseMachines& machines,
               CourseJob& job, CourseSettings settings);

  // Returns the exit code, once the job has ended or is left to another process.
  int run();

 private:
  Seen carry_out(Step step);
  Seen check_begin();
  Seen rent();
  Seen run_job();
  void forget_attempt();
  Seen ask_loss() { return {.taken = was_taken()}; }
  Seen save();
  Seen bring();
  Seen hold();
  Seen terminate();
  void note_loss();
  void note_success();
  void note_end();
  void conclude();
  Status machines_again();
  Status drop_lost();
  std::optional<std::chrono::milliseconds> wait_left() const;
  Result<AttemptEnd> attempt();
  CourseJob::Events events();
  Status bring_back();
  Status take_along();
  bool was_taken();
  bool may_be_done(const std::optional<cloud::Rental>& now) const;
  bool first_runs();
  bool is_wanted();
  Status note(cloud::RentedJob::Stage stage);
  Seen seen(const Status& done);
  Seen failed(Error why);
  void note_signal(int signal);

  cloud::Journal& journal_;
  cloud::RentedJob record_;
  CourseMachines& machines_;
  CourseJob& job_;
  CourseSettings settings_;
  Course course_;
  bool asked_to_end_ = false;    // SIGINT: the user canceled the job
  bool asked_to_leave_ = false;  // SIGTERM and the like: this process is to end
  AttemptEnd ended_;             // the newest attempt
  std::string missing_;          // why the outputs are not here
};

}  // namespace lockstep::jobs::rented
