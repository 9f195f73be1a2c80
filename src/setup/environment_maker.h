// Finds or makes the environment for a request, and locks it against other installs.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "setup/environment.h"
#include "setup/interpreter.h"
#include "setup/request.h"
#include "setup/spec.h"
#include "setup/tool.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

using Say = std::function<void(std::string_view)>;

// The failure of a tool: error, exit code and last lines.
struct Trouble {
  Error error;
  int code = 1;
  std::vector<std::string> tail = {};
};
template <class T>
using Attempt = tl::expected<T, Trouble>;
tl::unexpected<Trouble> trouble(int code, std::string message, std::string hint = {});

// Paths of one environment's files in the state folder. Projects may share an environment.
class EnvironmentFiles {
 public:
  explicit EnvironmentFiles(const std::string& place);  // the environment's prefix, or its
                                                        // interpreter if it has no prefix

  Status make() const;
  std::string log() const { return base_ + ".json"; }
  std::string interpreter() const { return base_ + ".python"; }
  std::string making() const {
    return base_ + ".making";
  }  // exists while the environment is being made
  std::string lock() const { return base_ + ".lock"; }
  std::string build() const { return base_ + ".build"; }

 private:
  std::string base_;
};

// Locks the environment against other installs on this host. Waits as long as another install has
// the lock, and says so. The lock lasts until the descriptor is closed.
Result<io::Fd> hold(const EnvironmentFiles& files, const std::string& shown, const Say& say);

// Chooses and makes the environment of one request. `request` and `specs` must outlive the object.
class EnvironmentMaker {
 public:
  EnvironmentMaker(const SetupRequest& request, const std::vector<Spec>& specs, std::string folder,
                   std::string uv, Say say);

  // Returns the environment to use. Makes and changes nothing on the host.
  Attempt<Environment> choose();
  // Makes a missing virtual environment. Conda environments are made by their own step.
  Attempt<void> make(const Environment& environment, const EnvironmentFiles& files);

  const std::string& conda() const { return conda_; }

 private:
  Attempt<Environment> choose_venv(const std::string& place) const;
  Attempt<Environment> choose_conda(const std::string& place);
  Attempt<std::string> conda_prefix(const std::string& name);
  Attempt<std::string> base_python() const;
  Attempt<void> make_venv(const std::string& prefix, const EnvironmentFiles& files);
  Attempt<void> show_host_torch(const std::string& prefix, bool may_change) const;
  bool asks_for_conda() const;
  std::string own_prefix(const char* kind) const;

  const SetupRequest& request_;
  const std::vector<Spec>& specs_;
  std::string folder_;
  std::string uv_;
  Say say_;
  std::string conda_;
};

}  // namespace lockstep::setup
