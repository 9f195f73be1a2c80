// The client's part of submitting a job on a login host: our own binary there submits it, with what
// is said here, and this client's job book knows it from then on.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "jobs/job_book.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Exit codes of `lockstep host-submit` there.
inline constexpr int kNotSubmitted = 3;
inline constexpr int kNotThere = 127;  // sbatch

// What the login host is told over stdin, where nobody else sees it.
struct LoginRequest {
  std::string id;                       // of the job, ours
  std::string folder;                   // where it is submitted, relative to the home there
  std::vector<std::string> words = {};  // for `lockstep submit` there
  std::vector<std::string> env = {};    // "NAME=value"
  bool preview = false;                 // the folder may still be to be brought
};
std::string request_text(const LoginRequest& request);
Result<LoginRequest> parse_request(std::string_view text);

// One line says why jobs can't be submitted there.
Status check_login(const hosts::HostPlace& place);

// The exit code of what a preview prints there.
Result<int> preview_on_login(const hosts::HostPlace& place, const LoginRequest& request);

struct SubmittedThere {
  int code = 0;  // not 0: it was refused, and the host has said why
  std::string name = {};
  std::string job = {};  // Slurm's id
  std::string output = {};
  std::string folder = {};
};
// Asks again where the connection is lost, and the job is submitted once all the same. unavailable:
// nobody knows whether it was submitted; canceled: by a signal, whose number is in Error::sys, and
// nobody knows either.
Result<SubmittedThere> submit_on_login(const hosts::HostPlace& place, const LoginRequest& request);

// Finds out the number of a job whose submission was left in the middle, and notes it down; a job
// that was not submitted is noted as lost. Does nothing for others, nor where the host is away.
Status complete_submission(const jobs::JobBook& book, jobs::KnownJob& job);

}  // namespace lockstep::jobs::on_slurm
