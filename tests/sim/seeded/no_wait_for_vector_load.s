; fault: missing_waitcnt at 8
; launch: 1 | 64 | f32(64), zeros(64)
; the loaded value is stored at once
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	global_store_dword v1, v2, s[6:7]
