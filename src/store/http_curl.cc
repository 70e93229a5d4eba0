// libcurl's multi interface, driven by socket_action and epoll on one thread at a time.
//
// The driver is the thread that owns the multi handle now: the transport's own thread, or a
// caller that waits (Drive). It is passed on under mutex_.
//
// What costs at small requests is not libcurl's parsing but system calls, so:
// - a connection stays registered with epoll while it is idle between two requests (libcurl asks
//   to have it removed and added each time); it is dropped from epoll when it is closed, or when
//   something stirs on it while it is idle;
// - easy handles are kept and reused; only what differs is set;
// - a driver is woken only when it sleeps.
#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "store/http_transport.h"

namespace grebe::store {
namespace {

constexpr size_t kErrorBodyMax = 64 << 10;
constexpr int64_t kFirstBodyBytes = 64 << 10;

bool SameIgnoringCase(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const char c = a[i] >= 'A' && a[i] <= 'Z' ? static_cast<char>(a[i] + 32) : a[i];
    if (c != lower[i]) return false;
  }
  return true;
}

int64_t ParseInt(std::string_view text, int64_t otherwise) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

// One running exchange, with the easy handle that it borrows.
class Transfer {
 public:
  explicit Transfer(CURL* easy) : easy_(easy) {}
  ~Transfer() { curl_easy_cleanup(easy_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* easy() const { return easy_; }
  HttpExchange* exchange() const { return exchange_.get(); }

  void Begin(std::shared_ptr<HttpExchange> exchange);
  std::shared_ptr<HttpExchange> End(CURLcode code);
  void OnHeader(std::string_view line);
  bool OnBody(std::string_view bytes);
  size_t OnSend(char* to, size_t room);
  void Rewind(int64_t to) { sent_bytes_ = static_cast<size_t>(to); }
  bool plain_get() const { return plain_get_; }

 private:
  bool WantsBody() const;
  bool Grow(size_t more);
  void SetHeaders();
  void SetMethod();

  CURL* const easy_;
  std::shared_ptr<HttpExchange> exchange_;
  std::vector<curl_slist> header_nodes_;
  std::shared_ptr<arrow::ResizableBuffer> body_;
  int64_t body_bytes_ = 0;
  size_t sent_bytes_ = 0;
  Status failure_;      // why a callback ended the exchange
  bool cut_off_ = false;  // ended on purpose: the answer counts
  bool plain_get_ = true;
};

void Transfer::SetHeaders() {
  std::string& block = exchange_->request.headers;
  header_nodes_.clear();
  for (size_t at = 0; at < block.size(); at += std::strlen(block.data() + at) + 1) {
    header_nodes_.push_back({block.data() + at, nullptr});
  }
  // libcurl's own additions that nobody needs, taken out.
  static char no_accept[] = "Accept:";
  static char no_expect[] = "Expect:";
  header_nodes_.push_back({no_accept, nullptr});
  if (exchange_->request.body != nullptr) header_nodes_.push_back({no_expect, nullptr});
  for (size_t i = 0; i + 1 < header_nodes_.size(); ++i) {
    header_nodes_[i].next = &header_nodes_[i + 1];
  }
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, header_nodes_.data());
}

void Transfer::SetMethod() {
  const HttpRequest& request = exchange_->request;
  plain_get_ = request.method == "GET" && request.body == nullptr;
  if (plain_get_) return;
  if (request.body != nullptr) {
    curl_easy_setopt(easy_, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy_, CURLOPT_INFILESIZE_LARGE,
                     static_cast<curl_off_t>(request.body->size()));
  }
  if (request.method == "HEAD") {
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  } else {
    curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void Transfer::Begin(std::shared_ptr<HttpExchange> exchange) {
  exchange_ = std::move(exchange);
  body_.reset();
  body_bytes_ = 0;
  sent_bytes_ = 0;
  failure_ = Status::OK();
  cut_off_ = false;
  const HttpRequest& request = exchange_->request;
  curl_easy_setopt(easy_, CURLOPT_URL, request.url.c_str());
  SetHeaders();
  SetMethod();
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_ms));
  // libcurl takes and gives back this buffer for every exchange. As small as the answer allows,
  // and below 64 KiB, from where on free() walks and trims the heap.
  const bool small = request.body_bytes >= 0 && request.body_bytes <= (14 << 10);
  curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, small ? 16L << 10 : 60L << 10);
  const bool stalls = request.timeout_ms == 0;
  curl_easy_setopt(easy_, CURLOPT_LOW_SPEED_LIMIT, stalls ? 1L : 0L);
  curl_easy_setopt(easy_, CURLOPT_LOW_SPEED_TIME,
                   stalls ? static_cast<long>(std::max<int64_t>(1, request.stall_ms / 1000)) : 0L);
}

void Transfer::OnHeader(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' ')) {
    line.remove_suffix(1);
  }
  HttpResponse& response = exchange_->response;
  if (line.starts_with("HTTP/")) {
    // A new answer: what an interim one (100) said does not count.
    const size_t space = line.find(' ');
    response = HttpResponse{};
    if (space != std::string_view::npos) {
      response.status_code = static_cast<int>(ParseInt(line.substr(space + 1, 3), 0));
    }
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  switch (name.size()) {
    case 4:
      if (SameIgnoringCase(name, "etag")) {
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
          value = value.substr(1, value.size() - 2);
        }
        response.etag = value;
      } else if (SameIgnoringCase(name, "date")) {
        response.date = value;
      }
      break;
    case 11:
      if (SameIgnoringCase(name, "retry-after")) response.retry_after_s = ParseInt(value, -1);
      break;
    case 13:
      if (SameIgnoringCase(name, "content-range")) response.content_range = value;
      break;
    case 14:
      if (SameIgnoringCase(name, "content-length")) response.content_length = ParseInt(value, -1);
      break;
    case 16:
      if (SameIgnoringCase(name, "x-amz-request-id")) response.request_id = value;
      break;
    case 19:
      if (SameIgnoringCase(name, "x-amz-bucket-region")) response.bucket_region = value;
      break;
    default: break;
  }
}

bool Transfer::WantsBody() const {
  const int status = exchange_->response.status_code;
  const int wanted = exchange_->request.body_status;
  return wanted == 0 ? status >= 200 && status < 300 : status == wanted;
}

bool Transfer::Grow(size_t more) {
  const HttpRequest& request = exchange_->request;
  const int64_t needed = body_bytes_ + static_cast<int64_t>(more);
  const int64_t limit = request.body_bytes >= 0 ? request.body_bytes : request.body_bytes_max;
  if (needed > limit) {
    exchange_->response.body_too_long = true;
    cut_off_ = true;
    return false;
  }
  if (body_ == nullptr) {
    int64_t first = request.body_bytes;
    if (first < 0) first = std::max(exchange_->response.content_length, kFirstBodyBytes);
    // What a header claims is believed up to a limit; beyond it, room follows the bytes.
    first = std::max(std::min(first, std::max<int64_t>(request.body_bytes, 64 << 20)), needed);
    Result<std::unique_ptr<arrow::ResizableBuffer>> made = arrow::AllocateResizableBuffer(first);
    if (!made.ok()) {
      failure_ = made.status();
      return false;
    }
    body_ = std::move(*made);
  } else if (needed > body_->size()) {
    if (Status grown = body_->Resize(std::max(needed, 2 * body_->size()), false); !grown.ok()) {
      failure_ = std::move(grown);
      return false;
    }
  }
  return true;
}

bool Transfer::OnBody(std::string_view bytes) {
  HttpResponse& response = exchange_->response;
  response.bytes_received += static_cast<int64_t>(bytes.size());
  if (exchange_->abandoned.load(std::memory_order_relaxed)) {
    failure_ = Cancelled("the exchange was abandoned");
    return false;
  }
  if (!WantsBody()) {
    if (response.status_code >= 200 && response.status_code < 300) {
      cut_off_ = true;
      return false;
    }
    const size_t room = kErrorBodyMax - std::min(kErrorBodyMax, response.error_body.size());
    response.error_body.append(bytes.substr(0, room));
    return true;
  }
  if (!Grow(bytes.size())) return false;
  std::memcpy(body_->mutable_data() + body_bytes_, bytes.data(), bytes.size());
  body_bytes_ += static_cast<int64_t>(bytes.size());
  return true;
}

size_t Transfer::OnSend(char* to, size_t room) {
  const std::string& body = *exchange_->request.body;
  const size_t size = std::min(room, body.size() - sent_bytes_);
  std::memcpy(to, body.data() + sent_bytes_, size);
  sent_bytes_ += size;
  return size;
}

Status OutcomeOf(CURLcode code, const std::string& url) {
  switch (code) {
    case CURLE_OK: return Status::OK();
    case CURLE_OUT_OF_MEMORY: return LimitExceeded("out of memory", "url", url);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return InvalidArgument("a malformed endpoint", "url", url);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return Permission("the server's certificate is not trusted", "url", url, "reason",
                        curl_easy_strerror(code));
    default:
      return Transient("no whole answer", "url", url, "reason", curl_easy_strerror(code), "curl",
                       static_cast<int>(code));
  }
}

std::shared_ptr<HttpExchange> Transfer::End(CURLcode code) {
  HttpResponse& response = exchange_->response;
  if (!failure_.ok()) {
    response.outcome = std::move(failure_);
  } else if (!cut_off_) {
    response.outcome = OutcomeOf(code, exchange_->request.url);
  }
  if (WantsBody()) {
    if (body_ == nullptr) {
      response.body = std::make_shared<arrow::Buffer>(nullptr, 0);
    } else if (body_->size() == body_bytes_) {
      response.body = std::move(body_);
    } else {
      // Room to spare: given back when it is much, else hidden.
      if (body_->size() > 2 * body_bytes_) (void)body_->Resize(body_bytes_, true);
      response.body = arrow::SliceBuffer(std::move(body_), 0, body_bytes_);
    }
  }
  body_.reset();
  if (!plain_get_) {
    curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, nullptr);
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 0L);
    curl_easy_setopt(easy_, CURLOPT_UPLOAD, 0L);
    curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
  }
  return std::move(exchange_);
}

size_t HeaderCallback(char* data, size_t size, size_t count, void* transfer) {
  static_cast<Transfer*>(transfer)->OnHeader({data, size * count});
  return size * count;
}

size_t BodyCallback(char* data, size_t size, size_t count, void* transfer) {
  const size_t bytes = size * count;
  return static_cast<Transfer*>(transfer)->OnBody({data, bytes}) ? bytes : bytes + 1;
}

size_t SendCallback(char* to, size_t size, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->OnSend(to, size * count);
}

int SeekCallback(void* transfer, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Transfer*>(transfer)->Rewind(offset);
  return CURL_SEEKFUNC_OK;
}

class CurlTransport final : public HttpTransport {
 public:
  explicit CurlTransport(const CurlTransportOptions& options) : options_(options) {}
  ~CurlTransport() override;

  Status Open();
  void Start(std::shared_ptr<HttpExchange> exchange, bool caller_drives) override;
  bool Drive(HttpInbox* inbox, Clock::time_point deadline) override;
  void Wake() override;

 private:
  // What epoll watches a socket for, and what libcurl wants of it now.
  struct Socket {
    uint32_t watched = 0;
    uint32_t wanted = 0;
    bool connection = false;  // made by libcurl for a connection: its closing is reported
  };
  struct Later {
    Clock::time_point at;
    std::shared_ptr<HttpExchange> exchange;
    bool operator<(const Later& other) const { return at > other.at; }
  };

  static int SocketCallback(CURL*, curl_socket_t fd, int what, void* self, void*);
  static int TimerCallback(CURLM*, long timeout_ms, void* self);
  static int OpenedCallback(void* self, curl_socket_t fd, curlsocktype);
  static int ClosingCallback(void* self, curl_socket_t fd);

  Socket& SocketOf(int fd);
  void Watch(int fd, uint32_t events);
  Transfer* NewTransfer();
  void Run();
  void Turn(HttpInbox* inbox, Clock::time_point deadline);
  void OnEvents(int count);
  bool HasWorkFor(const HttpInbox* other_than) const;
  int WaitMs(Clock::time_point deadline) const;
  void TakeIncoming();
  void StartDue();
  void Launch(std::shared_ptr<HttpExchange> exchange);
  void Collect();
  void Deliver();

  const CurlTransportOptions options_;
  CURLM* multi_ = nullptr;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable own_turn_;  // for the transport's own thread
  std::vector<std::shared_ptr<HttpExchange>> incoming_;
  bool driven_ = false;    // some thread is the driver
  bool work_left_ = false; // the last driver left exchanges behind
  bool sleeping_ = false;  // the driver waits in epoll
  bool stopping_ = false;

  // The driver's.
  std::vector<epoll_event> events_ = std::vector<epoll_event>(256);
  std::vector<Socket> sockets_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::vector<Transfer*> idle_;
  int active_count_ = 0;
  std::deque<std::shared_ptr<HttpExchange>> ready_;
  std::priority_queue<Later> later_;
  std::vector<std::shared_ptr<HttpExchange>> done_;
  Clock::time_point timer_at_ = Clock::time_point::max();
};

Status CurlTransport::Open() {
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (global != CURLE_OK) {
    return Internal("libcurl does not start", "code", static_cast<int>(global));
  }
  multi_ = curl_multi_init();
  epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (multi_ == nullptr || epoll_fd_ < 0 || wake_fd_ < 0) {
    return LimitExceeded("cannot open what HTTP needs", "errno", errno);
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_fd_;
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &SocketCallback);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &TimerCallback);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.connections_max));
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  thread_ = std::thread([this] { Run(); });
  return Status::OK();
}

CurlTransport::~CurlTransport() {
  if (thread_.joinable()) {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    own_turn_.notify_one();
    const uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof(one));
    thread_.join();
  }
  for (const auto& transfer : transfers_) {
    if (transfer->exchange() != nullptr) curl_multi_remove_handle(multi_, transfer->easy());
  }
  transfers_.clear();
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
  if (wake_fd_ >= 0) ::close(wake_fd_);
  if (epoll_fd_ >= 0) ::close(epoll_fd_);
}

void CurlTransport::Start(std::shared_ptr<HttpExchange> exchange, bool caller_drives) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    incoming_.push_back(std::move(exchange));
    wake = std::exchange(sleeping_, false);
    if (!driven_ && !caller_drives && !work_left_) {
      work_left_ = true;
      own_turn_.notify_one();
    }
  }
  if (wake) {
    const uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof(one));
  }
}

void CurlTransport::Wake() {
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(sleeping_, false)) return;
  }
  const uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof(one));
}

CurlTransport::Socket& CurlTransport::SocketOf(int fd) {
  if (static_cast<size_t>(fd) >= sockets_.size()) sockets_.resize(static_cast<size_t>(fd) + 16);
  return sockets_[static_cast<size_t>(fd)];
}

void CurlTransport::Watch(int fd, uint32_t events) {
  Socket& socket = SocketOf(fd);
  if (socket.watched == events) return;
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (events == 0) {
    ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  } else if (::epoll_ctl(epoll_fd_, socket.watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd,
                         &event) != 0) {
    // The number now names another socket than the one that was watched.
    if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
      ::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
    }
  }
  socket.watched = events;
}

int CurlTransport::SocketCallback(CURL*, curl_socket_t fd, int what, void* self, void*) {
  auto* const transport = static_cast<CurlTransport*>(self);
  Socket& socket = transport->SocketOf(fd);
  socket.wanted = 0;
  if (what == CURL_POLL_REMOVE) {
    if (!socket.connection) transport->Watch(fd, 0);
    return 0;
  }
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) socket.wanted |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) socket.wanted |= EPOLLOUT;
  transport->Watch(fd, socket.wanted);
  return 0;
}

int CurlTransport::TimerCallback(CURLM*, long timeout_ms, void* self) {
  static_cast<CurlTransport*>(self)->timer_at_ =
      timeout_ms < 0 ? Clock::time_point::max()
                     : Clock::now() + std::chrono::milliseconds(timeout_ms);
  return 0;
}

int CurlTransport::OpenedCallback(void* self, curl_socket_t fd, curlsocktype) {
  static_cast<CurlTransport*>(self)->SocketOf(fd) = {.watched = 0, .wanted = 0, .connection = true};
  return CURL_SOCKOPT_OK;
}

int CurlTransport::ClosingCallback(void* self, curl_socket_t fd) {
  static_cast<CurlTransport*>(self)->SocketOf(fd) = {};
  return ::close(fd);
}

Transfer* CurlTransport::NewTransfer() {
  CURL* const easy = curl_easy_init();
  if (easy == nullptr) return nullptr;
  transfers_.push_back(std::make_unique<Transfer>(easy));
  Transfer* const transfer = transfers_.back().get();
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout_ms));
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &HeaderCallback);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &BodyCallback);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, &SendCallback);
  curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &SeekCallback);
  curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &OpenedCallback);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, this);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, &ClosingCallback);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this);
  curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  return transfer;
}

void CurlTransport::Launch(std::shared_ptr<HttpExchange> exchange) {
  Transfer* transfer = nullptr;
  if (!idle_.empty()) {
    transfer = idle_.back();
    idle_.pop_back();
  } else {
    transfer = NewTransfer();
  }
  if (transfer == nullptr) {
    exchange->response.outcome = LimitExceeded("out of memory");
    done_.push_back(std::move(exchange));
    return;
  }
  transfer->Begin(std::move(exchange));
  if (const CURLMcode code = curl_multi_add_handle(multi_, transfer->easy()); code != CURLM_OK) {
    std::shared_ptr<HttpExchange> failed = transfer->End(CURLE_FAILED_INIT);
    failed->response.outcome = Internal("libcurl", "reason", curl_multi_strerror(code));
    done_.push_back(std::move(failed));
    idle_.push_back(transfer);
    return;
  }
  ++active_count_;
}

void CurlTransport::TakeIncoming() {
  std::vector<std::shared_ptr<HttpExchange>> taken;
  {
    std::lock_guard lock(mutex_);
    taken.swap(incoming_);
  }
  for (std::shared_ptr<HttpExchange>& exchange : taken) {
    const Clock::time_point at = exchange->start_at;
    if (at == Clock::time_point{} || at <= Clock::now()) {
      ready_.push_back(std::move(exchange));
    } else {
      later_.push({at, std::move(exchange)});
    }
  }
}

void CurlTransport::StartDue() {
  if (!later_.empty()) {
    const Clock::time_point now = Clock::now();
    while (!later_.empty() && later_.top().at <= now) {
      ready_.push_back(later_.top().exchange);
      later_.pop();
    }
  }
  while (!ready_.empty() && active_count_ < options_.connections_max) {
    std::shared_ptr<HttpExchange> exchange = std::move(ready_.front());
    ready_.pop_front();
    Launch(std::move(exchange));
  }
}

void CurlTransport::Collect() {
  int left = 0;
  while (CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const easy = message->easy_handle;
    const CURLcode code = message->data.result;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
    curl_multi_remove_handle(multi_, easy);
    done_.push_back(transfer->End(code));
    idle_.push_back(transfer);
    --active_count_;
  }
}

// Each inbox is woken once for all that came for it.
void CurlTransport::Deliver() {
  for (size_t begin = 0; begin < done_.size();) {
    const std::shared_ptr<HttpInbox> inbox = done_[begin]->inbox;
    size_t end = begin + 1;
    while (end < done_.size() && done_[end]->inbox == inbox) ++end;
    inbox->Push(std::span(done_).subspan(begin, end - begin));
    begin = end;
  }
  done_.clear();
}

int CurlTransport::WaitMs(Clock::time_point deadline) const {
  if (!ready_.empty() && active_count_ < options_.connections_max) return 0;
  Clock::time_point until = std::min(timer_at_, deadline);
  if (!later_.empty()) until = std::min(until, later_.top().at);
  if (until == Clock::time_point::max()) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(wait.count(), 0, 60000));
}

// Whether anything is under way, but for the exchanges of one inbox.
bool CurlTransport::HasWorkFor(const HttpInbox* other_than) const {
  const auto others = [&](const std::shared_ptr<HttpExchange>& exchange) {
    return exchange->inbox.get() != other_than;
  };
  if (!later_.empty() || std::any_of(ready_.begin(), ready_.end(), others) ||
      std::any_of(incoming_.begin(), incoming_.end(), others)) {
    return true;
  }
  if (active_count_ == 0) return false;
  return std::any_of(transfers_.begin(), transfers_.end(), [&](const auto& transfer) {
    return transfer->exchange() != nullptr && transfer->exchange()->inbox.get() != other_than;
  });
}

void CurlTransport::OnEvents(int count) {
  int running = 0;
  for (int i = 0; i < count; ++i) {
    const int fd = events_[static_cast<size_t>(i)].data.fd;
    const uint32_t got = events_[static_cast<size_t>(i)].events;
    if (fd == wake_fd_) {
      uint64_t value;
      (void)!::read(wake_fd_, &value, sizeof(value));
      continue;
    }
    if (SocketOf(fd).wanted == 0) {
      Watch(fd, 0);  // idle, and closed by the server: libcurl will find out
      continue;
    }
    int mask = 0;
    if (got & EPOLLIN) mask |= CURL_CSELECT_IN;
    if (got & EPOLLOUT) mask |= CURL_CSELECT_OUT;
    if (got & (EPOLLERR | EPOLLHUP)) mask |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi_, fd, mask, &running);
  }
}

// One round of the driver: what is due, then what epoll brings, waiting for it at most until
// deadline, and not at all when the inbox is ready.
void CurlTransport::Turn(HttpInbox* inbox, Clock::time_point deadline) {
  TakeIncoming();
  StartDue();
  if (timer_at_ != Clock::time_point::max() && timer_at_ <= Clock::now()) {
    timer_at_ = Clock::time_point::max();
    int running = 0;
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
  Collect();
  Deliver();
  if (inbox != nullptr && inbox->Ready()) return;
  int wait_ms = WaitMs(deadline);
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (!incoming_.empty()) wait_ms = 0;
    sleeping_ = wait_ms != 0;
  }
  // A Nudge before this is seen here; one after it finds the driver sleeping, and wakes it.
  if (inbox != nullptr && inbox->Ready()) wait_ms = 0;
  const int count =
      ::epoll_wait(epoll_fd_, events_.data(), static_cast<int>(events_.size()), wait_ms);
  {
    std::lock_guard lock(mutex_);
    sleeping_ = false;
  }
  OnEvents(count);
  Collect();
  Deliver();
}

bool CurlTransport::Drive(HttpInbox* inbox, Clock::time_point deadline) {
  {
    std::lock_guard lock(mutex_);
    if (driven_ || work_left_) return false;
    driven_ = true;
  }
  while (!inbox->Ready() && Clock::now() < deadline) Turn(inbox, deadline);
  std::lock_guard lock(mutex_);
  driven_ = false;
  // This thread comes back for its own; what others wait for must go on meanwhile.
  if (HasWorkFor(inbox)) {
    work_left_ = true;
    own_turn_.notify_one();
  }
  return true;
}

void CurlTransport::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    own_turn_.wait(lock, [this] { return stopping_ || (work_left_ && !driven_); });
    if (stopping_) return;
    work_left_ = false;
    driven_ = true;
    while (!stopping_ && (!incoming_.empty() || HasWorkFor(nullptr))) {
      lock.unlock();
      Turn(nullptr, Clock::time_point::max());
      lock.lock();
    }
    driven_ = false;
  }
}

}  // namespace

Result<std::shared_ptr<HttpTransport>> MakeCurlTransport(const CurlTransportOptions& options) {
  auto transport = std::make_shared<CurlTransport>(options);
  ARROW_RETURN_NOT_OK(transport->Open());
  return transport;
}

}  // namespace grebe::store
