#include "store/s3_client.h"

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>
#include <vector>

#include "store/uri.h"
#include "store/work_pool.h"

namespace grebe::store {
namespace {

int64_t NowS() { return static_cast<int64_t>(std::time(nullptr)); }

int HelperThreads() {
  return std::max(0, static_cast<int>(std::thread::hardware_concurrency()) - 1);
}

// Never destroyed: a helper may be the last to let go of a wave while the process ends.
WorkPool& Helpers() {
  static auto* const pool = new WorkPool(HelperThreads());
  return *pool;
}

// A large body may take longer than the time-out of a small one: 1 MiB/s is assumed at least.
int64_t TimeoutFor(int64_t timeout_ms, int64_t bytes) {
  return timeout_ms + bytes * 1000 / 1048576;
}

constexpr int kMovesMax = 3;

}  // namespace

S3Client::S3Client(std::string bucket, S3Settings settings, S3ClientOptions options,
                   std::shared_ptr<HttpTransport> transport,
                   std::unique_ptr<CredentialProvider> credentials)
    : bucket_(std::move(bucket)),
      settings_(std::move(settings)),
      options_(options),
      transport_(std::move(transport)),
      credentials_(std::move(credentials)),
      target_(MakeTarget(settings_.region)),
      jitter_(static_cast<uint64_t>(Clock::now().time_since_epoch().count())) {}

std::string S3Client::UriOf(std::string_view key) const {
  return "s3://" + bucket_ + "/" + std::string(key);
}

StoreCounters S3Client::counters() const {
  return {.requests = counters_.requests.load(),
          .retries = counters_.retries.load(),
          .hedges = counters_.hedges.load(),
          .bytes_read = counters_.bytes_read.load(),
          .bytes_written = counters_.bytes_written.load()};
}

std::shared_ptr<const S3Client::Target> S3Client::MakeTarget(const std::string& region) const {
  std::string endpoint = settings_.endpoint;
  bool path_style = settings_.path_style;
  if (endpoint.empty()) {
    endpoint = "https://s3." + region +
               (region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
    // A dot in a bucket's name breaks the wildcard certificate of virtual hosts.
    path_style = path_style || bucket_.find('.') != std::string::npos;
  }
  const size_t host_at = endpoint.find("://") + 3;
  std::string host = endpoint.substr(host_at);
  if (!path_style) host = bucket_ + "." + host;
  const std::string scheme = endpoint.substr(0, host_at);
  // libcurl leaves a scheme's default port out of the Host header, which is signed.
  std::string signed_host = host;
  const std::string_view default_port = scheme == "http://" ? ":80" : ":443";
  if (signed_host.ends_with(default_port)) {
    signed_host.resize(signed_host.size() - default_port.size());
  }
  return std::make_shared<Target>(Target{.signer = std::make_shared<Signer>(region, "s3"),
                                         .base_url = scheme + host,
                                         .host = std::move(signed_host),
                                         .path_prefix = path_style ? "/" + bucket_ : ""});
}

std::shared_ptr<const S3Client::Target> S3Client::target() const {
  std::lock_guard lock(mutex_);
  return target_;
}

void S3Client::MoveTo(const std::string& region) {
  std::shared_ptr<const Target> moved = MakeTarget(region);
  std::lock_guard lock(mutex_);
  target_ = std::move(moved);
}

void S3Client::SetClockBy(const std::string& server_date) {
  std::tm parts{};
  if (::strptime(server_date.c_str(), "%a, %d %b %Y %H:%M:%S", &parts) == nullptr) return;
  clock_offset_s_.store(static_cast<int64_t>(::timegm(&parts)) - NowS());
}

Result<std::shared_ptr<HttpExchange>> S3Client::MakeExchange(
    const S3Call& call, std::shared_ptr<const AwsCredentials>* credentials) {
  const std::shared_ptr<const Target> to = target();
  ARROW_ASSIGN_OR_RAISE(*credentials, credentials_->Get());
  auto exchange = std::make_shared<HttpExchange>();
  HttpRequest& request = exchange->request;
  request.method = call.method;
  request.body = call.body;
  const std::string path = to->path_prefix + "/" + PercentEncode(call.key, /*keep_slash=*/true);
  request.url.reserve(to->base_url.size() + path.size() + call.query.size() + 1);
  request.url = to->base_url;
  request.url += path;
  if (!call.query.empty()) {
    request.url += '?';
    request.url += call.query;
  }
  request.headers.reserve(512);
  int64_t bytes = call.body == nullptr ? 0 : static_cast<int64_t>(call.body->size());
  if (call.kind == S3Kind::kRange) {
    request.AddHeader("Range", "bytes=" + std::to_string(call.range.begin) + "-" +
                                   std::to_string(call.range.end - 1));
    if (!call.pinned.tag.empty()) request.AddHeader("If-Match", "\"" + call.pinned.tag + "\"");
    request.body_status = 206;
    request.body_bytes = bytes = call.range.size_bytes();
  }
  if (call.if_absent) request.AddHeader("If-None-Match", "*");
  request.timeout_ms = TimeoutFor(options_.request_timeout_ms, bytes);
  if (call.kind == S3Kind::kWhole) {
    request.timeout_ms = 0;  // its size is not known: it may not stand still
    request.stall_ms = options_.request_timeout_ms;
    request.body_status = 200;
  }
  if (call.kind == S3Kind::kText) request.body_bytes_max = 64 << 20;
  const AwsCredentials& keys = **credentials;
  if (keys.anonymous()) return exchange;
  const std::string date = AmzDate(NowS() + clock_offset_s_.load(std::memory_order_relaxed));
  const std::string_view hash =
      call.body_sha256_hex.empty() ? kEmptySha256Hex : std::string_view(call.body_sha256_hex);
  std::vector<std::pair<std::string_view, std::string_view>> headers = {
      {"host", to->host}, {"x-amz-content-sha256", hash}, {"x-amz-date", date}};
  if (!keys.session_token.empty()) {
    headers.emplace_back("x-amz-security-token", keys.session_token);
  }
  const std::string authorization =
      to->signer->Authorization(keys,
                               {.method = call.method,
                                .path = path,
                                .query = call.query,
                                .headers = headers,
                                .payload_sha256_hex = hash},
                               date);
  for (size_t i = 1; i < headers.size(); ++i) {
    request.AddHeader(headers[i].first, headers[i].second);
  }
  request.AddHeader("Authorization", authorization);
  return exchange;
}

int64_t S3Client::BackoffMs(int attempt, const HttpResponse& response) {
  constexpr int64_t kRetryAfterMaxS = 20;
  const int64_t full = std::min(options_.backoff_max_ms,
                                options_.backoff_first_ms << std::min(attempt - 1, 20));
  double fraction;
  {
    std::lock_guard lock(mutex_);
    fraction = jitter_.Fraction();
  }
  const auto jittered =
      static_cast<int64_t>(static_cast<double>(full) * (0.5 + 0.5 * fraction));
  return std::max(jittered, 1000 * std::min(response.retry_after_s, kRetryAfterMaxS));
}

Result<HttpResponse> S3Client::Run(S3Call* call) {
  Result<HttpResponse> result = Status::UnknownError("no answer");
  auto wave = std::make_shared<S3Wave>(
      this,
      [&](size_t, S3Call& run, Result<HttpResponse> answer) {
        call->unsure = run.unsure;
        result = std::move(answer);
      },
      /*parallel=*/false, /*small=*/true);
  wave->Add(*call, 0);
  wave->Wait();
  return result;
}

void S3Wave::Add(S3Call call, size_t id) {
  State* state;
  {
    std::lock_guard lock(mutex_);
    states_.emplace_back();
    state = &states_.back();
    state->call = std::move(call);
    state->id = id;
    state->index = states_.size() - 1;
    ++unfinished_;
  }
  Send(state, 0, /*hedge=*/false, small_);
}

void S3Wave::Send(State* state, int64_t delay_ms, bool hedge, bool caller_drives) {
  std::shared_ptr<const AwsCredentials> credentials;
  Result<std::shared_ptr<HttpExchange>> made = client_->MakeExchange(state->call, &credentials);
  if (!made.ok()) {
    if (hedge) return;
    {
      std::lock_guard lock(mutex_);
      state->done = true;
    }
    Finish(state, made.status());
    return;
  }
  const std::shared_ptr<HttpExchange>& exchange = *made;
  exchange->inbox = inbox_;
  if (delay_ms > 0) exchange->start_at = Clock::now() + std::chrono::milliseconds(delay_ms);
  S3Client::Counters& counters = client_->counters_;
  {
    std::lock_guard lock(mutex_);
    if (hedge && state->done) return;
    exchange->call_index = state->index;
    ++state->attempts;
    ++state->running;
    state->sent_at = Clock::now() + std::chrono::milliseconds(delay_ms);
    state->credentials = std::move(credentials);
    state->exchanges[hedge ? 1 : 0] = exchange;
    if (hedge) {
      state->hedged = true;
      ++hedges_;
      ++counters.hedges;
    } else if (state->attempts > 1) {
      ++counters.retries;
    }
  }
  ++counters.requests;
  if (state->call.body != nullptr) {
    counters.bytes_written += static_cast<int64_t>(state->call.body->size());
  }
  client_->transport_->Start(exchange, caller_drives);
}

// Whether the call is sent again, and when. Called under the lock.
bool S3Wave::Again(State* state, const Verdict& verdict, const HttpResponse& response,
                   int64_t* delay_ms) {
  *delay_ms = 0;
  if (verdict.next == Verdict::kRetry) {
    if (state->attempts > client_->options_.retries_max) return false;
    *delay_ms = client_->BackoffMs(state->attempts, response);
    return true;
  }
  if (++state->moves > kMovesMax) return false;
  switch (verdict.next) {
    case Verdict::kNewKeys: return client_->credentials_->Refuse(*state->credentials);
    case Verdict::kOtherRegion: client_->MoveTo(verdict.region); return true;
    case Verdict::kOtherClock: client_->SetClockBy(response.date); return true;
    default: return false;
  }
}

void S3Wave::Handle(const std::shared_ptr<HttpExchange>& exchange, bool caller_drives) {
  HttpResponse& response = exchange->response;
  State* state;
  {
    std::lock_guard lock(mutex_);
    state = &states_[exchange->call_index];
    --state->running;
    if (state->done) return;  // the other of two hedged exchanges won; the client may be gone
  }
  client_->counters_.bytes_read += response.bytes_received;
  Verdict verdict = JudgeAnswer(state->call, response, client_->UriOf(state->call.key));
  // Sent, and no word of refusal: it may have been done.
  const bool unsure = !response.outcome.ok() || response.status_code >= 500;
  int64_t delay_ms = 0;
  bool again = false;
  {
    std::lock_guard lock(mutex_);
    if (state->done) return;
    state->call.unsure = state->call.unsure || unsure;
    if (verdict.next == Verdict::kRetry && state->running > 0) return;  // the other may succeed
    again = verdict.next != Verdict::kDone && verdict.next != Verdict::kFail &&
            Again(state, verdict, response, &delay_ms);
    if (!again) {
      state->done = true;
      for (const auto& other : state->exchanges) {
        if (other != nullptr && other != exchange) other->abandoned = true;
      }
    }
    state->exchanges[0] = state->exchanges[1] = nullptr;
  }
  if (again) {
    Send(state, delay_ms, /*hedge=*/false, caller_drives);
  } else if (verdict.next == Verdict::kDone) {
    Finish(state, std::move(response));
  } else {
    Finish(state, AddContext(verdict.status, "attempts", std::to_string(state->attempts)));
  }
}

void S3Wave::Finish(State* state, Result<HttpResponse> answer) {
  on_answer_(state->id, state->call, std::move(answer));
  state->call.body = nullptr;
  size_t left;
  {
    std::lock_guard lock(mutex_);
    left = --unfinished_;
  }
  if (left > 0) return;
  inbox_->Nudge();
  if (small_) transport_->Wake();
}

// Another thread empties the inbox beside this one, and leaves when it is empty.
void S3Wave::CallHelper() {
  if (helpers_.fetch_add(1) >= Helpers().threads_max()) {
    helpers_.fetch_sub(1);
    return;
  }
  Helpers().Submit([self = shared_from_this()] {
    bool more = false;
    while (const std::shared_ptr<HttpExchange> exchange = self->inbox_->TryPop(&more)) {
      self->Handle(exchange, /*caller_drives=*/false);
    }
    self->helpers_.fetch_sub(1);
  });
}

Clock::time_point S3Wave::HedgeDue() {
  if (client_->options_.hedge_after_us <= 0) return Clock::time_point::max();
  std::lock_guard lock(mutex_);
  if (hedges_ >= std::max<int64_t>(2, static_cast<int64_t>(states_.size()) / 8)) {
    return Clock::time_point::max();
  }
  Clock::time_point due = Clock::time_point::max();
  for (const State& state : states_) {
    if (state.done || state.hedged || state.running != 1 || state.call.kind != S3Kind::kRange) {
      continue;
    }
    due = std::min(due,
                   state.sent_at + std::chrono::microseconds(client_->options_.hedge_after_us));
  }
  return due;
}

void S3Wave::SendHedges() {
  std::vector<State*> slow;
  {
    std::lock_guard lock(mutex_);
    const Clock::time_point before =
        Clock::now() - std::chrono::microseconds(client_->options_.hedge_after_us);
    const auto limit = std::max<size_t>(2, states_.size() / 8);
    for (State& state : states_) {
      if (slow.size() + static_cast<size_t>(hedges_) >= limit) break;
      if (!state.done && !state.hedged && state.call.kind == S3Kind::kRange &&
          state.running == 1 && state.sent_at <= before) {
        slow.push_back(&state);
      }
    }
  }
  for (State* state : slow) Send(state, 0, /*hedge=*/true, small_);
}

void S3Wave::Wait(size_t unfinished_max) {
  // Waking another thread costs as much as this: worth it only for callbacks that do real work.
  constexpr auto kHelpWorth = std::chrono::microseconds(15);
  Clock::duration handled{};
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (unfinished_ <= unfinished_max) return;
    }
    bool more = false;
    const Clock::time_point hedge_due = HedgeDue();
    const std::shared_ptr<HttpExchange> exchange =
        small_ ? PopDriving(client_->transport_.get(), inbox_.get(), hedge_due, &more)
               : inbox_->Pop(hedge_due, &more);
    if (exchange != nullptr) {
      if (more && parallel_ && handled > kHelpWorth) CallHelper();
      const Clock::time_point begin = Clock::now();
      Handle(exchange, small_);
      handled = Clock::now() - begin;
    } else if (hedge_due != Clock::time_point::max()) {
      SendHedges();
    }
  }
}

}  // namespace grebe::store
