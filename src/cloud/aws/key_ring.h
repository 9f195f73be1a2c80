// Finds AWS's keys in the order of AWS's own tools. Writes nothing back.
#pragma once

#include "cloud/aws/profile.h"
#include "cloud/provider.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::aws {

struct KeySource {
  enum class Kind { given, program, role, metadata };

  Kind kind = Kind::given;
  std::string from;
  Keys keys = {};                              // given
  std::vector<std::string> program = {};       // prints keys
  Profile profile = {};                        // role: the role to assume
  std::shared_ptr<const KeySource> base = {};  // role: the keys to assume it with
};
using KeySourcePtr = std::shared_ptr<KeySource>;  // nullptr: only the aws program can get them

// Assumes a role with other keys.
using AssumeRole = std::function<Result<Keys>(const Keys& base, const Profile& role)>;

class KeyRing {
 public:
  explicit KeyRing(Ground ground) : ground_(std::move(ground)) {}

  // Looks for sources of keys, once. Does not use the network.
  Status find();
  Result<Keys> fetch(Web& web, const AssumeRole& assume) const;

  const std::string& region() const { return region_; }  // the region to ask first
  // Files of keys that other users may read.
  const std::vector<std::string>& loose_files() const { return loose_files_; }
  std::string env(std::string_view name) const;  // "": not set
  const Ground& ground() const { return ground_; }

 private:
  Status look();
  Status look_in_profiles();
  Result<KeySourcePtr> source_of(const codec::Ini& credentials, const codec::Ini& config,
                                 const std::string& name, int depth) const;
  Result<KeySourcePtr> role_source(const codec::Ini& credentials, const codec::Ini& config,
                                   const std::string& name, const Profile& profile,
                                   int depth) const;
  Result<codec::Ini> read_settings(const char* variable, const char* path);
  KeySource& add(KeySource::Kind kind, std::string from);
  void add_exported();
  void add_metadata();
  Result<Keys> fetch_from(Web& web, const KeySource& source, const AssumeRole& assume) const;
  Result<Keys> from_metadata(Web& web) const;

  Ground ground_;
  bool looked_ = false;
  std::vector<KeySourcePtr> sources_;  // the first that gives keys wins
  bool profile_found_ = false;
  std::string region_;
  std::vector<std::string> loose_files_;
};

}  // namespace lockstep::cloud::aws
