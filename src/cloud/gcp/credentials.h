// Finds the account's credentials: a key file of a service account, a user's file from gcloud, or
// gcloud itself. And the project.
#pragma once

#include "base/error.h"
#include "cloud/provider.h"

#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

struct Credentials {
  enum class Kind { service_account, authorized_user, gcloud };

  Kind kind = Kind::gcloud;
  std::string where = {};          // the file, or "gcloud"
  std::string project = {};        // machines are billed to it
  std::string email = {};          // service account
  std::string private_key = {};    // service account; secret
  std::string key_id = {};         // service account: which of its keys
  std::string token_uri = {};      // address that gives access tokens
  std::string client_id = {};      // user
  std::string client_secret = {};  // secret
  std::string refresh_token = {};  // secret
  std::string quota_project = {};  // user: the project that the calls themselves are billed to
  bool exposed = false;            // other users may read the file
};

inline constexpr std::string_view kTokenUri = "https://oauth2.googleapis.com/token";

// Parses a file; no error shows any of its text. Kind::gcloud: only gcloud can use such
// credentials.
Result<Credentials> parse_credentials(std::string_view text, const std::string& where);

// Looks in all places. not_found: in none. Does not use the network.
Result<Credentials> find_credentials(const Ground& ground);

}  // namespace lockstep::cloud::gcp
