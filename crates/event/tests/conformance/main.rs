//! The requirements for every kernel under the loop: one suite, run on each of them with real sockets and pipes.
//!
//! A test is a function over a kernel; [`suite!`] creates one `#[test]` of it for every backend. The recording handler
//! checks the order of events in all tests.
#![allow(clippy::unwrap_used, reason = "a test")]

mod accepting;
mod ahead;
mod datagrams;
mod ending;
mod harness;
mod mail;
mod panics;
mod pipes;
mod progress;
mod receiving;
mod relaying;
mod sending;
mod terminals;
mod time;
mod torture;
#[path = "../../../database/tests/support/untested.rs"]
mod untested;

macro_rules! suite {
    ($backend:ident = $kernel:expr; $($module:ident: $($test:ident),+ $(,)?;)+) => {
        mod $backend {
            $(mod $module {
                $(#[test]
                fn $test() {
                    crate::$module::$test($kernel);
                })+
            })+
        }
    };
}

macro_rules! all_of_it_over {
    ($backend:ident = $kernel:expr) => {
        suite! { $backend = $kernel;
            accepting:
                accepted_streams_speak_and_a_closed_listener_refuses,
                a_paused_listener_accepts_later,
                more_than_the_accept_budget_come_in_later_turns,
                a_listener_that_cannot_be_watched_is_told_and_tried_again,
                connecting_sends_what_was_queued_before,
                connecting_to_nobody_ends_with_the_reason,
                finishing_before_connected_still_sends,
                unix_sockets_accept_and_connect,
                connecting_follows_no_link_of_another_user,
                connecting_can_be_given_up_by_a_deadline,
                our_direction_can_end_before_connected,
                a_listener_of_the_standard_library_does_not_block_the_loop;
            panics:
                what_comes_behind_an_event_on_which_the_owner_panics_is_told,
                a_panic_on_mail_loses_that_mail_alone,
                a_panic_on_a_timer_loses_that_timer_alone;
            receiving:
                data_and_fin_in_one_report,
                fin_alone,
                single_bytes_come_together_into_lines,
                what_is_not_consumed_comes_again_with_the_next_bytes,
                a_pause_keeps_data_and_eof_back,
                pausing_in_the_last_offer_keeps_it,
                the_end_of_a_paused_peer_is_told_ahead,
                a_hang_up_is_told_while_paused,
                a_hang_up_is_told_once,
                resuming_in_every_callback_does_not_keep_the_loop,
                more_than_the_read_budget_comes_in_later_turns,
                a_report_for_a_stream_that_has_more_reads_no_more,
                a_full_hold_ends_the_stream,
                a_full_hold_waits_while_paused,
                a_long_hold_grows_and_is_offered_whole,
                taken_parts_stay_valid;
            ending:
                a_reset_after_data_still_offers_the_data,
                a_reset_after_eof_ends_the_stream,
                a_stream_may_linger_for_ever,
                a_released_stream_loses_no_byte,
                a_released_descriptor_can_be_adopted_again,
                what_cannot_be_released_stays,
                a_peer_that_left_is_seen_by_writing,
                a_failed_write_still_offers_what_came,
                a_paused_stream_whose_send_fails_is_told_broken,
                a_paused_stream_that_waits_for_room_is_told_broken,
                a_broken_stream_that_is_paused_later_is_told_so,
                what_was_not_sent_is_told_with_the_end,
                finishing_discards_until_the_peer_ends,
                finishing_after_eof_ends_at_once,
                a_peer_that_lingers_is_left,
                a_peer_that_never_reads_is_left,
                a_peer_that_goes_on_reading_is_not_left,
                closing_is_silent,
                resetting_is_no_end_for_the_peer,
                what_a_peer_was_not_sent_in_time_it_misses,
                closing_a_sibling_reported_in_the_same_batch,
                an_old_id_never_reaches_its_successor,
                stopping_sends_what_was_queued,
                our_direction_ends_while_the_peers_goes_on,
                both_directions_end_in_either_order,
                finishing_after_our_direction_ended_discards_the_rest;
            sending:
                a_slow_reader_gets_everything_in_order,
                many_small_sends_leave_in_one_call,
                drained_comes_once_below_the_low_mark,
                what_expects_silence_is_sent_into_silence_alone,
                too_much_output_ends_the_stream;
            progress:
                what_a_peer_acknowledges_counts_though_the_kernel_accepts_nothing,
                it_counts_of_relayed_bytes_as_well,
                on_a_pipe_what_the_kernel_accepts_counts,
                a_peer_that_acknowledges_is_not_left;
            pipes:
                a_pipe_ends_behind_its_last_byte,
                a_paused_pipe_tells_of_its_end,
                a_pipe_without_a_reader_is_reset,
                what_the_reader_of_a_pipe_left_unread_is_told_with_its_end,
                a_finished_pipe_is_flushed_first,
                a_slow_reader_of_a_pipe_gets_everything,
                what_cannot_be_waited_for_is_refused,
                the_end_of_a_child_is_the_end_of_its_stream,
                a_foreign_descriptor_neither_blocks_nor_is_inherited,
                a_shared_descriptor_stops_reporting_once_closed;
            terminals:
                a_terminal_speaks_both_ways_and_ends_with_its_program,
                a_terminal_takes_no_more_than_its_program_reads;
            datagrams:
                each_datagram_is_one_event_and_its_answer_goes_to_its_sender,
                the_longest_datagram_passes_whole,
                unix_datagrams_are_answered_by_name,
                a_reply_does_not_follow_a_link_that_replaced_its_sender,
                a_reply_does_not_pass_through_the_root_of_a_process,
                a_sender_with_a_relative_name_gets_no_reply,
                a_reply_goes_only_to_a_socket_of_the_user_who_sent,
                what_finds_nobody_is_lost_and_the_rest_goes_on,
                more_datagrams_than_the_budget_come_in_later_turns,
                a_closed_socket_is_silent_and_refuses,
                no_more_wait_than_may;
            relaying:
                everything_passes_in_order_until_the_end,
                a_limit_is_kept_and_the_rest_is_offered,
                a_slow_reader_holds_the_source_back,
                a_target_that_leaves_ends_the_relay,
                a_paused_target_that_breaks_ends_the_relay,
                pipes_are_relayed_too,
                what_cannot_be_spliced_is_copied;
            time:
                nothing_fires_early_and_each_fires_once,
                deadlines_end_with_their_stream,
                a_timer_that_rang_can_be_set_again,
                what_is_cancelled_in_the_same_turn_does_not_fire,
                a_hundred_thousand_deadlines_cost_nothing_when_put_off,
                a_time_that_has_passed_fires_in_the_next_turn,
                what_was_ready_when_a_timer_was_due_comes_before_it,
                what_came_while_the_process_was_stopped_comes_before_a_timer,
                a_timer_fires_though_more_is_always_ready_than_one_turn_takes;
            mail:
                mail_wakes_a_sleeping_loop,
                all_mail_of_many_threads_comes_in_order,
                more_than_the_mail_budget_comes_in_later_turns,
                what_an_owner_posts_to_itself_comes_in_the_same_turn_but_once;
            torture:
                random_consumers_see_the_same_bytes;
        }
    };
}

all_of_it_over!(epoll = event::Epoll::new().unwrap());
all_of_it_over!(poll = event::Poll::new().unwrap());
all_of_it_over!(select = event::Select::new().unwrap());
