// Finds the project, and the account's credentials: the key file of a service account, a user's
// file from gcloud, or gcloud itself.
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
  std::string project = {};        // machines are billed to this project
  std::string email = {};          // service account
  std::string private_key = {};    // service account; secret
  std::string key_id = {};         // service account: which of its keys
  std::string token_uri = {};      // address that gives access tokens
  std::string client_id = {};      // user
  std::string client_secret = {};  // secret
  std::string refresh_token = {};  // secret
  std::string quota_project = {};  // user: the project that pays for calls
  bool exposed = false;            // other users may read the file
};

inline constexpr std::string_view kTokenUri = "https://oauth2.googleapis.com/token";

// Parses a file. No error shows any text of the file. Kind::gcloud: only gcloud can use these
// credentials.
Result<Credentials> parse_credentials(std::string_view text, const std::string& where);

// Looks in all places, without the network. Errc::not_found: no place has credentials.
Result<Credentials> find_credentials(const Ground& ground);

}  // namespace lockstep::cloud::gcp
