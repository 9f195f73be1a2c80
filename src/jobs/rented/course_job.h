// The face of a course's job to the driver of the course (course_driver.h): attempts and outputs.
// Tests use a fake.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "jobs/attempt.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {

class CourseJob {
 public:
  struct Events {
    // The book has the attempt, and no host does yet. An error keeps the attempt from starting.
    std::function<Status(const std::string& id)> recorded;
    // All hosts have the attempt. ahead: the jobs that it waits for.
    std::function<void(const std::vector<std::string>& ahead)> started;
  };
  virtual ~CourseJob() = default;

  // Follows an attempt that another process of ours began. nullopt: the attempt runs nowhere, and
  // may begin again under this id.
  virtual Result<std::optional<AttemptEnd>> follow(const std::string& id) = 0;
  // Brings the project to the machines, begins an attempt there, and follows it. number: 1 for the
  // first attempt. Prints errors.
  virtual AttemptEnd begin(int number, const Events& events) = 0;
  // Brings the outputs from the machines, node 0 first: a job may have them on node 0 alone. Sends
  // them to the machines of the next attempt.
  virtual Status bring_outputs(const std::vector<hosts::HostPlace>& from) = 0;
  virtual Status send_outputs(const std::vector<hosts::HostPlace>& to) = 0;
};

}  // namespace lockstep::jobs::rented
