// The machines of a course at the providers.
#pragma once

#include "jobs/rented/course_machines.h"
#include "rent/gang.h"
#include "rent/on_demand.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {

// What the machines tell a person.
struct MachineWords {
  rent::TellEvent event = {};
  std::function<void(const std::string& text)> step = {};  // of first contact
  // Terminates the machines and tells their cost.
  std::function<Status(cloud::Rental& rental)> give_back = {};
};

class OnDemandMachines : public CourseMachines {
 public:
  // world must outlive the object.
  OnDemandMachines(rent::OnDemand& world, cloud::Rental rental, MachineWords words)
      : CourseMachines(std::move(rental)), world_(world), words_(std::move(words)) {}

  std::int64_t now_ms() const override { return world_.now_ms(); }
  int take_signal() override;
  Status lock() override;
  void unlock() override { world_.locks().release(rental_.cluster); }
  Status rent(bool on_demand, std::optional<std::chrono::milliseconds> wait) override;
  Status drop_lost() override;
  Status give_back() override;
  std::optional<cloud::Rental> look() override;
  Result<std::vector<hosts::HostPlace>> places() override;
  Result<std::vector<rent::LeaseAnswer>> leases() override;
  Status hold(std::int64_t seconds) override;

  // Returns whether the provider says that at least one machine is gone. Makes a world of its own,
  // so any thread may call while the rental does not change.
  bool some_gone() const;

 private:
  rent::OnDemand& world_;
  MachineWords words_;
};

}  // namespace lockstep::jobs::rented
