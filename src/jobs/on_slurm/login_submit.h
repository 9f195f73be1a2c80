// The client's part of a submission on a login host. Our own binary there submits the job with the
// words given here. This client's job book then knows the job.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "jobs/job_book.h"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Exit codes of `lockstep host-submit` on the login host.
inline constexpr int kNotSubmitted = 3;

// The request to the login host, sent over stdin, where no other user can read it.
struct LoginRequest {
  std::string id;      // our id of the job
  std::string folder;  // where to submit the job, relative to the home folder there
  std::vector<std::string> words = {};  // arguments of `lockstep submit` there
  std::vector<std::string> env = {};    // "NAME=value"
  bool preview = false;                 // only print; the folder may not exist there yet
};
std::string request_text(const LoginRequest& request);
Result<LoginRequest> parse_request(std::string_view text);

// What the login host is asked with. A test gives stand-ins.
struct LoginWorld {
  using Clock = std::chrono::steady_clock;

  hosts::RunCommand run = hosts::over_links();
  std::function<Clock::time_point()> now = Clock::now;
  std::function<void(std::chrono::milliseconds)> sleep = [](std::chrono::milliseconds pause) {
    std::this_thread::sleep_for(pause);
  };
};

// Checks that jobs can be submitted there. The error gives the reason in one line.
Status check_login(const hosts::HostPlace& place, const LoginWorld& world = {});

// Prints the preview there. Returns its exit code.
Result<int> preview_on_login(const hosts::HostPlace& place, const LoginRequest& request,
                             const LoginWorld& world = {});

struct SubmittedThere {
  int code = 0;  // not 0: the job was refused, and the host has said why
  std::string name = {};
  std::string job = {};  // Slurm's id
  std::string output = {};
  std::string folder = {};
};
// Submits the job. Retries after a lost connection; the job is still submitted only once.
// unavailable: the host's answer never came, so the job may or may not be submitted. canceled: the
// same, after a signal, whose number is in Error::sys.
Result<SubmittedThere> submit_on_login(const hosts::HostPlace& place, const LoginRequest& request,
                                       const LoginWorld& world = {});

// Submits the job and records it in the book, with Slurm's id. Records the job first, and keeps the
// record after an error: the answer is missing, but the job may be submitted, as another command
// finds out later. Only a refused job leaves no record. The job's only node must be the login host.
Result<SubmittedThere> submit_recorded(const jobs::JobBook& book, jobs::KnownJob& job,
                                       const LoginRequest& request, const LoginWorld& world = {});

// Finds and records the Slurm id of a job with an interrupted submission. A job not submitted is
// recorded as lost. Does nothing for other jobs, or if the host does not answer.
Status complete_submission(const jobs::JobBook& book, jobs::KnownJob& job,
                           const LoginWorld& world = {});

}  // namespace lockstep::jobs::on_slurm
